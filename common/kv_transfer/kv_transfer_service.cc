// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/kv_transfer_service.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/status.h"

namespace setu::kv_transfer {
namespace {

using worker::v1::PushKvRequest;

// Owns itself until gRPC is done with it; its transfer holds it too.
class PushCall final : public grpc::ServerReadReactor<PushKvRequest>, public PushStream {
 public:
  static PushCall* Start(Receiver& receiver) {
    std::shared_ptr<PushCall> push(new PushCall(receiver));
    push->self_ = push;
    push->Proceed();
    return push.get();
  }

  void Proceed() override {
    std::lock_guard lock(mutex_);
    if (!ended_) StartRead(&request_);
  }

  void End(const absl::Status& status) override {
    std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    Finish(rpc::ToGrpc(status));
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Fail(absl::CancelledError("the stream ended before its commit"));
    // The next read, or the end, may come on another thread while this one returns: a part that was
    // handed over is not looked at again.
    const bool frame = request_.part_case() == PushKvRequest::kFrame;
    if (absl::Status taken = Handle(); !taken.ok()) return Fail(taken);
    if (frame) Proceed();
  }
  void OnCancel() override { Fail(absl::CancelledError("the sender has gone")); }
  void OnDone() override { self_ = nullptr; }

 private:
  explicit PushCall(Receiver& receiver) : receiver_(receiver) {}

  absl::Status Handle() {
    switch (request_.part_case()) {
      case PushKvRequest::kManifest:
        return Begin();
      case PushKvRequest::kFrame:
        if (transfer_ != nullptr) return transfer_->Take(request_.frame());
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
    SETU_RETURN_IF_ERROR((*found)->Begin(request_.manifest(), self_));
    // A cancel that came before the transfer knew this stream was not heard.
    std::lock_guard lock(mutex_);
    return ended_ ? absl::CancelledError("the sender has gone") : absl::OkStatus();
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
  std::mutex mutex_;
  bool ended_ = false;
  std::shared_ptr<Transfer> transfer_;
};

}  // namespace

grpc::ServerReadReactor<PushKvRequest>* KvTransferService::PushKv(grpc::CallbackServerContext*,
                                                                  worker::v1::PushKvResponse*) {
  return PushCall::Start(receiver_);
}

}  // namespace setu::kv_transfer
