// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/kv_transfer_service.h"

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/kv_transfer/peer_staging.h"
#include "common/rpc/status.h"

namespace setu::kv_transfer {
namespace {

using worker::v1::PushKvRequest;
using worker::v1::PushKvResponse;

// Owns itself until gRPC is done with it; its transfer holds it too.
class PushCall final : public grpc::ServerBidiReactor<PushKvRequest, PushKvResponse>,
                       public PushStream {
 public:
  static PushCall* Start(Receiver& receiver) {
    std::shared_ptr<PushCall> push(new PushCall(receiver));
    push->self_ = push;
    push->Proceed();
    return push.get();
  }

  void Proceed() override {
    std::lock_guard lock(mutex_);
    if (!end_) StartRead(&request_);
  }

  void End(const absl::Status& status) override {
    std::lock_guard lock(mutex_);
    if (end_) return;
    end_ = status;
    if (!answering_) FinishNow();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Fail(absl::CancelledError("the stream ended before its commit"));
    // The next read, or the end, may come on another thread while this one returns: a part that was
    // handed over is not looked at again.
    const bool frame = request_.part_case() == PushKvRequest::kFrame;
    if (absl::Status taken = Handle(); !taken.ok()) return Fail(taken);
    if (frame) Proceed();
  }
  void OnWriteDone(bool) override {
    std::lock_guard lock(mutex_);
    answering_ = false;
    if (end_) return FinishNow();
    if (next_answer_) AnswerNow(*std::exchange(next_answer_, std::nullopt));
  }
  void OnCancel() override { Fail(absl::CancelledError("the sender has gone")); }
  // A transfer may hold this call longer, and let go of it on the loop's thread: what a dead
  // sender's memory takes to be freed is no business of a step.
  void OnDone() override {
    memory_.reset();
    self_ = nullptr;
  }

 private:
  explicit PushCall(Receiver& receiver) : receiver_(receiver) {}

  absl::Status Handle() {
    switch (request_.part_case()) {
      case PushKvRequest::kManifest:
        return Begin();
      case PushKvRequest::kFrame:
        if (transfer_ != nullptr) return Take(request_.frame());
        break;
      case PushKvRequest::kCommit:
        if (transfer_ != nullptr) return transfer_->Commit(request_.commit());
        break;
      case PushKvRequest::PART_NOT_SET:
        break;
    }
    return absl::InvalidArgumentError("PushKv is one manifest, then frames, then one commit");
  }

  absl::Status Begin() {
    absl::StatusOr<std::shared_ptr<Transfer>> found = receiver_.Find(request_.manifest());
    if (!found.ok()) return found.status();
    {
      std::lock_guard lock(mutex_);
      if (transfer_ != nullptr) return absl::InvalidArgumentError("a second manifest");
      transfer_ = *found;
    }
    // Before the transfer knows of this stream: the next read may come as soon as it does, and its
    // answer is not to come first.
    if (request_.manifest().has_memory()) Answer(Open(request_.manifest().memory()));
    SETU_RETURN_IF_ERROR((*found)->Begin(request_.manifest(), self_));
    // A cancel that came before the transfer knew this stream was not heard.
    std::lock_guard lock(mutex_);
    return end_ ? absl::CancelledError("the sender has gone") : absl::OkStatus();
  }

  PushKvResponse Open(const worker::v1::SharedMemory& offer) {
    PushKvResponse answer;
    absl::StatusOr<PeerStaging> memory = PeerStaging::Open(offer);
    answer.mutable_memory()->set_refused_because(std::string(memory.status().message()));
    if (memory.ok()) memory_ = *std::move(memory);
    return answer;
  }

  absl::Status Take(const worker::v1::Frame& frame) {
    if (!frame.has_staged()) return transfer_->Take(frame);
    if (!memory_) return absl::InvalidArgumentError("frame.staged, but no memory was taken");
    SETU_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, memory_->Fetch(frame.staged()));
    PushKvResponse answer;
    answer.set_frames_read(++frames_read_);
    Answer(answer);
    return transfer_->TakeStaged(frame, bytes);
  }

  // Of answers that wait for the one before, the newest count says all: a sender stages nothing
  // before it has the answer to its offer.
  void Answer(const PushKvResponse& answer) {
    std::lock_guard lock(mutex_);
    if (end_) return;
    if (answering_) {
      next_answer_ = answer;
    } else {
      AnswerNow(answer);
    }
  }
  // With the lock held, and no answer being written; FinishNow too, which comes again once the last
  // answer is written: gRPC 1.51 now and then lost a message that it was to write and finish with.
  void AnswerNow(const PushKvResponse& answer) {
    answer_ = answer;
    answering_ = true;
    StartWrite(&answer_);
  }
  void FinishNow() {
    if (!end_->ok() || committed_) return Finish(rpc::ToGrpc(*end_));
    committed_ = true;
    PushKvResponse answer;
    answer.set_committed(true);
    AnswerNow(answer);
  }

  void Fail(const absl::Status& status) {
    std::shared_ptr<Transfer> transfer;
    {
      std::lock_guard lock(mutex_);
      transfer = transfer_;
    }
    if (transfer != nullptr) transfer->Lost(this, status);
    End(status);
  }

  Receiver& receiver_;
  std::shared_ptr<PushCall> self_;
  PushKvRequest request_;
  // The reads' alone.
  std::optional<PeerStaging> memory_;
  uint64_t frames_read_ = 0;

  std::mutex mutex_;  // guards the rest
  std::optional<absl::Status> end_;
  PushKvResponse answer_;
  bool answering_ = false;  // with it
  bool committed_ = false;  // is being said, or was
  std::optional<PushKvResponse> next_answer_;
  std::shared_ptr<Transfer> transfer_;
};

}  // namespace

grpc::ServerBidiReactor<PushKvRequest, PushKvResponse>* KvTransferService::PushKv(
    grpc::CallbackServerContext*) {
  return PushCall::Start(receiver_);
}

}  // namespace setu::kv_transfer
