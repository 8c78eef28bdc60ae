// SPDX-License-Identifier: Apache-2.0
#include "tests/support/grpc_proxy.h"

#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/channel_factory.h"

namespace setu::test {

// Two calls, the client's and the one to the server, each driving the other: one read or write is
// in flight in each direction. Lives until gRPC is done with both.
class GrpcProxy::Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(const grpc::GenericCallbackServerContext& client, grpc::GenericStub& stub,
       const Watch& watch, uint64_t id)
      : watch_(watch), method_(client.method().substr(client.method().rfind('/') + 1)), id_(id) {
    context_.set_deadline(client.deadline());
    stub.PrepareBidiStreamingCall(&context_, client.method(), {}, &upstream_);
    upstream_.AddHold();  // until it has no more to say: writes start from the client's callbacks
    upstream_.StartRead(&answer_.bytes);
    upstream_.StartCall();
    StartRead(&request_.bytes);
  }

  void OnReadDone(bool ok) override {
    const bool pass = Passes(request_, false, ok);
    std::lock_guard lock(mutex_);
    if (!upstream_open_) return;
    if (pass && ok) {
      upstream_.StartWrite(&request_.bytes);
    } else if (pass) {
      upstream_.StartWritesDone();
    } else if (ok) {
      StartRead(&request_.bytes);
    }
  }
  void OnWriteDone(bool) override { upstream_.StartRead(&answer_.bytes); }
  void OnCancel() override {
    context_.TryCancel();
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (ended_) End(grpc::Status::CANCELLED);
  }
  void OnDone() override { Leave(); }

 private:
  class Upstream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit Upstream(Call& call) : call_(call) {}
    void OnReadDone(bool ok) override { call_.OnAnswer(ok); }
    void OnWriteDone(bool ok) override { call_.OnPassedOn(ok); }
    void OnDone(const grpc::Status& status) override { call_.OnEnd(status); }

   private:
    Call& call_;
  };
  struct Direction {
    grpc::ByteBuffer bytes;
    int next = 0;
    bool held = false;
  };

  // Whether the next message, or the end of them, goes on.
  bool Passes(Direction& direction, bool answer, bool message) {
    if (!message || direction.held) return !direction.held;
    const Message passing{method_, id_, answer, direction.next++, &direction.bytes};
    const Verdict verdict = watch_(passing);
    direction.held = verdict != Verdict::kPass;
    if (verdict == Verdict::kCut) {
      cut_ = true;
      context_.TryCancel();
    }
    return !direction.held;
  }

  void OnPassedOn(bool ok) {
    std::lock_guard lock(mutex_);
    if (ok && upstream_open_) StartRead(&request_.bytes);
  }

  void OnAnswer(bool ok) {
    if (!ok) {
      {
        std::lock_guard lock(mutex_);
        upstream_open_ = false;
      }
      upstream_.RemoveHold();
    } else if (Passes(answer_, true, ok)) {
      StartWrite(&answer_.bytes);
    } else {
      upstream_.StartRead(&answer_.bytes);
    }
  }

  // No write to the client is in flight: this call's end is found by a read, which follows one.
  void OnEnd(const grpc::Status& status) {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      if (cut_) {
        End({grpc::StatusCode::UNAVAILABLE, "the proxy cut this call"});
      } else if (cancelled_ || !answer_.held || !status.ok()) {
        End(status);
      }
    }
    Leave();
  }

  // With the lock held.
  void End(const grpc::Status& status) {
    if (!std::exchange(finished_, true)) Finish(status);
  }

  void Leave() {
    if (--sides_ == 0) delete this;
  }

  const Watch& watch_;
  const std::string method_;
  const uint64_t id_;
  grpc::ClientContext context_;
  Upstream upstream_{*this};
  Direction request_, answer_;
  std::atomic<int> sides_ = 2;
  std::atomic<bool> cut_ = false;

  std::mutex mutex_;           // guards the rest
  bool upstream_open_ = true;  // it may be written to, and the client read
  bool ended_ = false;         // upstream
  bool cancelled_ = false;     // by the client
  bool finished_ = false;
};

class GrpcProxy::Service final : public grpc::CallbackGenericService {
 public:
  Service(const std::string& upstream, Watch watch)
      : watch_(std::move(watch)), stub_(rpc::MakeTcpChannelFactory()->Connect(upstream)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Call(*context, stub_, watch_, next_id_++);
  }

 private:
  const Watch watch_;
  grpc::GenericStub stub_;
  std::atomic<uint64_t> next_id_ = 0;
};

GrpcProxy::GrpcProxy(const std::string& upstream, Watch watch)
    : service_(std::make_unique<Service>(upstream, std::move(watch))) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  // Peers ping every 10 s.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 9'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  SETU_CHECK(server_ != nullptr, "the loopback has a free port");
  address_ = absl::StrCat("127.0.0.1:", port);
}

GrpcProxy::~GrpcProxy() { server_->Shutdown(std::chrono::system_clock::now()); }

}  // namespace setu::test
