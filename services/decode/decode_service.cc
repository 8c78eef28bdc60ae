// SPDX-License-Identifier: Apache-2.0
#include "services/decode/decode_service.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "common/wire/convert.h"

namespace setu::decode {
namespace {

using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;

// Owns itself until gRPC is done with it; the loop holds it too while its request lives.
class Call final : public grpc::ServerBidiReactor<DecodeRequest, DecodeResponse>,
                   public ReplyStream,
                   public WriteThread::Stream {
 public:
  static Call* Start(Inbox<Event>& inbox, WriteThread& writes, int32_t vocabulary, RequestId id) {
    std::shared_ptr<Call> call(new Call(inbox, writes, vocabulary, id));
    call->self_ = call;
    call->Read();
    return call.get();
  }

  void SendReady(uint32_t attempt, int32_t blocks_held) override {
    Send([&](DecodeResponse& response) {
      response.mutable_ready()->set_attempt(attempt);
      response.mutable_ready()->set_blocks_held(blocks_held);
    });
  }
  void SendCommitted(uint32_t attempt, uint64_t kv_bytes) override {
    Send([&](DecodeResponse& response) {
      response.mutable_committed()->set_attempt(attempt);
      response.mutable_committed()->set_kv_bytes(kv_bytes);
    });
  }
  void SendEnded(uint32_t choice, engine::EndReason reason, int32_t generated) override {
    Send([&](DecodeResponse& response) {
      response.mutable_ended()->set_choice(choice);
      response.mutable_ended()->set_reason(wire::ToProto(reason));
      response.mutable_ended()->set_generated(generated);
    });
  }
  void SendPreempted(uint32_t choice) override {
    Send([&](DecodeResponse& response) { response.mutable_preempted()->set_choice(choice); });
  }
  void SendTransferStalled(uint32_t attempt) override {
    Send([&](DecodeResponse& response) {
      response.mutable_transfer_stalled()->set_attempt(attempt);
    });
  }
  void SendDraining() override {
    Send([](DecodeResponse& response) { response.mutable_draining(); });
  }
  void SendToken(uint32_t choice, int32_t index, const engine::SampledToken& token) override;
  void End(const absl::Status& status) override;
  void Write() override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_ = nullptr; }

 private:
  Call(Inbox<Event>& inbox, WriteThread& writes, int32_t vocabulary, RequestId id)
      : inbox_(inbox), writes_(writes), vocabulary_(vocabulary), id_(id) {}

  void Read();
  absl::Status Handle();
  absl::Status Open(const worker::v1::Open& open);
  absl::Status Tell(Event event);
  template <typename Fill>
  void Send(Fill fill);

  Inbox<Event>& inbox_;
  WriteThread& writes_;
  const int32_t vocabulary_;
  const RequestId id_;
  std::shared_ptr<Call> self_;
  DecodeRequest request_;  // the reads' alone

  std::mutex mutex_;
  bool opened_ = false;     // the loop knows this stream; written by the reads, which need no lock
  bool cancelled_ = false;  // the router has gone
  std::deque<DecodeResponse> queue_;  // to be written, one after the other
  std::optional<grpc::Status> end_;   // follows the queue
  bool writing_ = false;              // `Write` will be called, or was and has not come to rest
  DecodeResponse written_;            // in gRPC's hands, until OnWriteDone
};

void Call::OnReadDone(bool ok) {
  // A router that has opened and has no more to say may go on listening.
  if (!ok && opened_) return;
  const absl::Status handled =
      ok ? Handle() : absl::InvalidArgumentError("the stream ended without an open");
  if (handled.ok()) return Read();
  End(handled);
  if (opened_) inbox_.PushUnbounded(StreamLost{id_});
}

void Call::OnCancel() {
  bool opened;
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    opened = opened_;
  }
  if (opened) inbox_.PushUnbounded(StreamLost{id_});
}

void Call::Read() {
  std::lock_guard lock(mutex_);
  if (!end_) StartRead(&request_);
}

absl::Status Call::Handle() {
  if (opened_ == request_.has_open()) {
    return absl::InvalidArgumentError("a Decode stream is one open, then other messages");
  }
  switch (request_.event_case()) {
    case DecodeRequest::kOpen:
      return Open(request_.open());
    case DecodeRequest::kRetry:
      return Tell(Retried{id_, request_.retry().attempt()});
    case DecodeRequest::kStopChoice:
      return Tell(ChoiceStopped{id_, request_.stop_choice().choice()});
    case DecodeRequest::kDelivered:
      return Tell(
          TokensDelivered{id_, request_.delivered().choice(), request_.delivered().next_index()});
    case DecodeRequest::EVENT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a message of Decode without an event that this worker knows");
}

absl::Status Call::Open(const worker::v1::Open& open) {
  SETU_ASSIGN_OR_RETURN(wire::Sequence sequence, wire::FromProto(open.sequence(), vocabulary_));
  SETU_RETURN_IF_ERROR(Tell(Opened{id_, open.attempt(), std::move(sequence), open.prefill_here(),
                                   open.promise_all(), self_}));
  bool cancelled;
  {
    std::lock_guard lock(mutex_);
    opened_ = true;
    cancelled = cancelled_;  // came before there was anything to cancel
  }
  if (cancelled) inbox_.PushUnbounded(StreamLost{id_});
  return absl::OkStatus();
}

absl::Status Call::Tell(Event event) {
  if (inbox_.Push(std::move(event))) return absl::OkStatus();
  return absl::ResourceExhaustedError("this worker's inbox is full; try another worker");
}

template <typename Fill>
void Call::Send(Fill fill) {
  std::lock_guard lock(mutex_);
  if (end_ || cancelled_) return;
  fill(queue_.emplace_back());
  if (!std::exchange(writing_, true)) writes_.Add(self_);
}

// Joins the message before it where that still waits: a slow stream carries fewer, larger ones.
void Call::SendToken(uint32_t choice, int32_t index, const engine::SampledToken& token) {
  {
    std::lock_guard lock(mutex_);
    if (!queue_.empty() && !end_ && queue_.back().has_tokens()) {
      worker::v1::Tokens& tokens = *queue_.back().mutable_tokens();
      const int32_t next = static_cast<int32_t>(tokens.first_index()) + tokens.tokens_size();
      if (tokens.choice() == choice && next == index) {
        *tokens.add_tokens() = wire::ToProto(token);
        return;
      }
    }
  }
  Send([&](DecodeResponse& response) {
    response.mutable_tokens()->set_choice(choice);
    response.mutable_tokens()->set_first_index(index);
    *response.mutable_tokens()->add_tokens() = wire::ToProto(token);
  });
}

void Call::End(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  if (end_) return;
  end_ = rpc::ToGrpc(status);
  if (!std::exchange(writing_, true)) writes_.Add(self_);
}

void Call::OnWriteDone(bool ok) {
  if (!ok) {
    std::lock_guard lock(mutex_);
    queue_.clear();
    cancelled_ = true;
  }
  Write();
}

// Without the lock where it costs, so that the loop does not wait for it.
void Call::Write() {
  {
    std::lock_guard lock(mutex_);
    writing_ = end_ || !queue_.empty();
    if (!writing_) return;
    if (queue_.empty()) return Finish(*end_);
    written_ = std::move(queue_.front());
    queue_.pop_front();
  }
  StartWrite(&written_);
}

}  // namespace

DecodeService::DecodeService(Inbox<Event>& inbox, int32_t vocabulary)
    : inbox_(inbox), vocabulary_(vocabulary) {}

grpc::ServerBidiReactor<DecodeRequest, DecodeResponse>* DecodeService::Decode(
    grpc::CallbackServerContext*) {
  return Call::Start(inbox_, writes_, vocabulary_, next_id_++);
}

}  // namespace setu::decode
