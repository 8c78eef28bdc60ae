// SPDX-License-Identifier: Apache-2.0
// A push over gRPC: manifest, frames, commit (setu/worker/v1/kv_transfer.proto).
//
//   auto push = GrpcPush::Start(channel, storage, plan, clock, done);
//
// The methods never wait and may be called from any thread; copying and sending happen on gRPC's.
// `storage` and `clock` must outlive the push.
#ifndef SETU_COMMON_KV_TRANSFER_SENDER_H_
#define SETU_COMMON_KV_TRANSFER_SENDER_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/kv/kv_storage.h"
#include "common/kv_transfer/push.h"
#include "setu/worker/v1/kv_transfer.grpc.pb.h"

namespace setu::kv_transfer {

// Bytes of KV in one frame at most; one frame is in flight per push.
inline constexpr size_t kFrameBytes = 1 << 20;

class GrpcPush final : public Push, private grpc::ClientWriteReactor<worker::v1::PushKvRequest> {
 public:
  static std::shared_ptr<Push> Start(const std::shared_ptr<grpc::Channel>& channel,
                                     const kv::KvStorage& storage, PushPlan plan,
                                     const Clock& clock, PushDone done);

  void Final(int32_t layer, int32_t blocks) override;
  void Commit(std::span<const wire::FirstToken> first_tokens) override;
  void Cancel() override;

 private:
  // kIdle: nothing to send. kSending: a write is in flight or about to be made, and whoever
  // completes it owns the fields marked `writer's`. kEnded: no write will be made any more.
  enum class Phase { kIdle, kSending, kEnded };
  struct Run {
    int32_t layer = 0, first_block = 0, count = 0;
  };

  GrpcPush(const std::shared_ptr<grpc::Channel>& channel, const kv::KvStorage& storage,
           PushPlan plan, const Clock& clock, PushDone done);
  void OnReadInitialMetadataDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void StopWriting();
  void WakeWriter();
  void SendNext();
  std::optional<Run> NextRun();
  void FillFrame(const Run& run);

  // The RPC's side of gRPC. It is gone before `done` is called: whoever waits for that may then
  // take servers and channels down, and the last of them must not die on a thread of gRPC's own.
  struct Rpc {
    std::unique_ptr<worker::v1::KvTransferService::Stub> stub;
    grpc::ClientContext context;
  };
  std::unique_ptr<Rpc> rpc_;
  const kv::KvStorage& storage_;
  const PushPlan plan_;
  const int32_t frame_blocks_;
  const Clock& clock_;
  const PushDone done_;
  worker::v1::PushKvResponse response_;
  std::shared_ptr<GrpcPush> self_;  // until OnDone

  std::mutex mutex_;  // guards the next seven; never held while bytes are copied
  Phase phase_ = Phase::kSending;
  TimePoint sending_since_;     // where that is the phase
  Duration sending_{};          // before
  bool stopped_ = false;        // the stream has ended, or is to
  std::vector<int32_t> final_;  // [layers], blocks
  std::optional<worker::v1::Commit> commit_;
  std::optional<grpc::Alarm> wake_;

  worker::v1::PushKvRequest message_;  // writer's
  std::vector<int32_t> sent_;          // writer's: [layers], blocks
  uint64_t kv_bytes_ = 0;              // writer's
  bool commit_sent_ = false;           // writer's
};

}  // namespace setu::kv_transfer

#endif  // SETU_COMMON_KV_TRANSFER_SENDER_H_
