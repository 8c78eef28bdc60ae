// SPDX-License-Identifier: Apache-2.0
// A push over gRPC: manifest, frames, commit (setu/worker/v1/kv_transfer.proto). To a receiver on
// this host the bytes of frames go through `staging`, while it has slots; all else is the same.
//
//   auto push = GrpcPush::Start(channel, storage, staging.get(), plan, clock, done);
//
// The methods never wait and may be called from any thread; copying and sending happen on gRPC's.
// `storage`, `staging` and `clock` must outlive the push.
#ifndef SETU_COMMON_KV_TRANSFER_SENDER_H_
#define SETU_COMMON_KV_TRANSFER_SENDER_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/kv/kv_storage.h"
#include "common/kv_transfer/push.h"
#include "common/kv_transfer/shared_staging.h"
#include "setu/worker/v1/kv_transfer.grpc.pb.h"

namespace setu::kv_transfer {

// Bytes of KV in one frame at most, or those of one piece where that is larger.
inline constexpr size_t kFrameBytes = 1 << 20;
size_t SlotBytes(const kv::KvLayout& layout);  // that every frame fits
// Of one push: one is read while the next is filled.
inline constexpr size_t kSlotsPerPush = 2;

class GrpcPush final
    : public Push,
      private grpc::ClientBidiReactor<worker::v1::PushKvRequest, worker::v1::PushKvResponse> {
 public:
  // Without `staging`, null, every frame carries its bytes.
  static std::shared_ptr<Push> Start(const std::shared_ptr<grpc::Channel>& channel,
                                     const kv::KvStorage& storage, SharedStaging* staging,
                                     PushPlan plan, const Clock& clock, PushDone done);

  void Final(int32_t layer, int32_t blocks) override;
  void Commit(std::span<const wire::FirstToken> first_tokens) override;
  void Cancel() override;

 private:
  // kIdle: nothing to send. kWaiting: there is, once the receiver has answered the offer or read a
  // slot. kSending: a write is in flight or about to be made, and whoever completes it owns the
  // fields marked `writer's`. kEnded: no write will be made any more.
  enum class Phase { kIdle, kWaiting, kSending, kEnded };
  enum class Offer { kNone, kAsked, kTaken };  // of the staging; kNone after a refusal too
  struct Run {
    int32_t layer = 0, first_block = 0, count = 0;
  };
  // Where a frame's bytes go; without a slot into the frame.
  struct Place {
    uint64_t offset = 0;
    std::span<std::byte> slot;
  };

  GrpcPush(const std::shared_ptr<grpc::Channel>& channel, const kv::KvStorage& storage,
           SharedStaging* staging, PushPlan plan, const Clock& clock, PushDone done);
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void Hear(const worker::v1::PushKvResponse& answer);
  void StopWriting();
  void WakeWriter();
  void SendNext();
  std::optional<Run> NextRun();
  std::optional<Place> NextPlace();
  std::span<std::byte> Room(const Place& place, size_t bytes);
  void FillFrame(const Run& run, const Place& place);

  // The RPC's side of gRPC. It is gone before `done` is called: whoever waits for that may then
  // take servers and channels down, and the last of them must not die on a thread of gRPC's own.
  // Whoever cancels finds it or finds none, so the lock guards that.
  struct Rpc {
    std::unique_ptr<worker::v1::KvTransferService::Stub> stub;
    grpc::ClientContext context;
  };
  std::unique_ptr<Rpc> rpc_;
  const kv::KvStorage& storage_;
  SharedStaging* const staging_;
  const PushPlan plan_;
  const int32_t frame_blocks_;
  const Clock& clock_;
  const PushDone done_;
  worker::v1::PushKvResponse answer_;  // the reads' alone
  std::shared_ptr<GrpcPush> self_;     // until OnDone

  std::mutex mutex_;  // guards the next twelve; never held while bytes are copied
  Phase phase_ = Phase::kSending;
  TimePoint sending_since_;     // where that is the phase
  Duration sending_{};          // before
  bool stopped_ = false;        // the stream has ended, or is to
  std::vector<int32_t> final_;  // [layers], blocks
  std::optional<worker::v1::Commit> commit_;
  std::optional<grpc::Alarm> wake_;
  Offer offer_;
  std::string shm_refused_;
  std::deque<SharedStaging::Slot> slots_;  // out, in the order of their frames
  uint64_t slots_read_ = 0;                // that came back
  bool committed_ = false;

  worker::v1::PushKvRequest message_;  // writer's
  std::vector<int32_t> sent_;          // writer's: [layers], blocks
  uint64_t kv_bytes_ = 0;              // writer's
  uint64_t shm_bytes_ = 0;             // writer's
  bool commit_sent_ = false;           // writer's
};

}  // namespace setu::kv_transfer

#endif  // SETU_COMMON_KV_TRANSFER_SENDER_H_
