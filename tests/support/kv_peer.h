// SPDX-License-Identifier: Apache-2.0
// A decode worker as a pushing prefill worker sees it: keeps what arrives, or misbehaves as told.
//
//   KvPeer peer;                                   // a grpc::Service for rpc::Server::Start
//   peer.Misbehave({.after = 2, .status = grpc::Status(DATA_LOSS, "")});   // from the next push on
//   KvPeer::Received got = peer.WaitForPush(0);    // the first push, when it has ended
#ifndef SETU_TESTS_SUPPORT_KV_PEER_H_
#define SETU_TESTS_SUPPORT_KV_PEER_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "setu/worker/v1/kv_transfer.grpc.pb.h"

namespace setu::test {

class KvPeer final : public worker::v1::KvTransferService::CallbackService {
 public:
  struct Received {
    worker::v1::Manifest manifest;
    std::vector<worker::v1::Frame> frames;  // with their bytes; those of staged ones are fetched
    size_t staged = 0;                      // frames
    std::optional<worker::v1::Commit> commit;
    bool ended = false;
    bool cancelled = false;

    // (block, layer) -> bytes of that piece. A piece that came twice, a wrong CRC or a size that
    // is no multiple of the count fails the running test.
    std::map<std::pair<uint32_t, uint32_t>, std::string> Pieces() const;
  };
  // What a push meets once `after` messages have been read.
  struct Fault {
    int after = std::numeric_limits<int>::max();
    std::optional<grpc::Status> status;  // ends the push so; absent: reads no more
    std::string memory_refused;          // an offer, for this reason; empty: it is taken
    bool keeps_slots = false;            // says of no staged frame that it was read
    bool keeps_silent = false;           // does not answer the commit
  };

  void Misbehave(Fault fault);
  // Waits for at most 20 s; what has arrived until then otherwise, which fails the running test.
  Received WaitForPush(size_t number);
  void WaitForMessages(size_t number, size_t messages);
  size_t pushes();

  grpc::ServerBidiReactor<worker::v1::PushKvRequest, worker::v1::PushKvResponse>* PushKv(
      grpc::CallbackServerContext* context) override;

 private:
  class Stream;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Received> received_;
  std::vector<size_t> messages_;
  Fault fault_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_KV_PEER_H_
