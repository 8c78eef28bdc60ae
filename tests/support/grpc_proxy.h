// SPDX-License-Identifier: Apache-2.0
// A server that passes every call on to another address, message by message, whatever the service.
// A test watches what passes, and does its worst at exactly that place.
//
//   GrpcProxy proxy("127.0.0.1:50053", [&](const GrpcProxy::Message& message) {
//     if (message.method == "PushKv" && message.index == 3) cluster.Kill("prefill-0");
//     return GrpcProxy::Verdict::kPass;
//   });
//   Connect(proxy.address());
#ifndef SETU_TESTS_SUPPORT_GRPC_PROXY_H_
#define SETU_TESTS_SUPPORT_GRPC_PROXY_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace setu::test {

class GrpcProxy {
 public:
  struct Message {
    std::string method;  // without its service: "PushKv"
    uint64_t call = 0;
    bool answer = false;                // from the server
    int index = 0;                      // in its direction of its call, from 0
    grpc::ByteBuffer* bytes = nullptr;  // what goes on; may be changed

    template <typename Proto>
    Proto Read() const;
    template <typename Proto>
    void Replace(const Proto& proto) const;
  };
  // kHold: neither this message nor anything after it in its direction of its call goes on, nor an
  // end that is OK, as if the network stood still. The loss of either side still ends the call.
  // kCut: both sides lose the call here.
  enum class Verdict { kPass, kHold, kCut };
  // Before a message goes on. From several threads, few of them: it must not wait long.
  using Watch = std::function<Verdict(const Message&)>;

  GrpcProxy(const std::string& upstream, Watch watch);
  ~GrpcProxy();  // ends all calls

  const std::string& address() const { return address_; }

 private:
  class Call;
  class Service;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

template <typename Proto>
Proto GrpcProxy::Message::Read() const {
  Proto proto;
  grpc::ByteBuffer copy = *bytes;
  grpc::SerializationTraits<Proto>::Deserialize(&copy, &proto);
  return proto;
}

template <typename Proto>
void GrpcProxy::Message::Replace(const Proto& proto) const {
  bool own = false;
  bytes->Clear();
  grpc::SerializationTraits<Proto>::Serialize(proto, bytes, &own);
}

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_GRPC_PROXY_H_
