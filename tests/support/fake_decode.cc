// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tests/support/fake_workers.h"

namespace setu::test {

using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;

class FakeDecode::Stream final : public grpc::ServerBidiReactor<DecodeRequest, DecodeResponse> {
 public:
  Stream(FakeDecode& worker, DecodePlan plan) : worker_(worker), plan_(std::move(plan)) {
    StartRead(&request_);
  }

  // The KV arrived. False where this attempt is not the current one.
  bool Commit(uint32_t attempt) {
    if (attempt != attempt_ || ended_ || plan_.stall_transfer) return false;
    committed_ = true;
    if (plan_.forget_retry) return true;
    SendCommitted();
    Generate();
    return true;
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      const std::lock_guard lock(worker_.mutex_);
      Take(request_);
    }
    worker_.changed_.notify_all();
    StartRead(&request_);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(worker_.mutex_);
    if (ok && outgoing_.front().has_tokens()) ++worker_.tokens_sent_;
    worker_.changed_.notify_all();
    outgoing_.pop_front();
    if (!outgoing_.empty()) {
      StartWrite(&outgoing_.front());
    } else if (ended_) {
      Finish(end_);
    }
  }

  void OnCancel() override {
    const std::lock_guard lock(worker_.mutex_);
    End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
  }

  void OnDone() override {
    {
      const std::lock_guard lock(worker_.mutex_);
      worker_.open_.erase(this);
      if (open_.has_sequence()) worker_.by_uuid_.erase(open_.sequence().uuid());
    }
    worker_.changed_.notify_all();
    delete this;
  }

 private:
  void Take(const DecodeRequest& request) {
    switch (request.event_case()) {
      case DecodeRequest::kOpen:
        return Open(request.open());
      case DecodeRequest::kRetry:
        return Retry(request.retry().attempt());
      case DecodeRequest::kStopChoice:
        worker_.stopped_.insert(request.stop_choice().choice());
        next_.erase(request.stop_choice().choice());
        return;
      case DecodeRequest::kDelivered:
        delivered_[request.delivered().choice()] = request.delivered().next_index();
        if (committed_) Generate();
        return;
      case DecodeRequest::EVENT_NOT_SET:
        return;
    }
  }

  void Open(const worker::v1::Open& open) {
    open_ = open;
    attempt_ = open.attempt();
    worker_.promised_all_ += open.promise_all();
    worker_.by_uuid_[open.sequence().uuid()] = this;
    const int32_t generated = open.sequence().ids_size() - open.sequence().prompt_length();
    for (uint32_t choice : open.sequence().choices()) {
      next_[choice] = delivered_[choice] = generated;
    }
    if (plan_.refuse) return End(*plan_.refuse);
    if (plan_.hasty) SendToken(generated, open.sequence().choices(0));
    if (!plan_.mute && !plan_.hasty) SendReady();
  }

  void SendToken(int32_t index, uint32_t choice) {
    DecodeResponse response;
    response.mutable_tokens()->set_choice(choice);
    response.mutable_tokens()->set_first_index(index);
    response.mutable_tokens()->add_tokens()->set_id(worker_.workers_.TokenAt(index, choice));
    Send(response);
  }

  void Retry(uint32_t attempt) {
    plan_.stall_transfer = false;
    if (committed_ && !plan_.forget_retry) return SendCommitted();
    plan_.forget_retry = committed_ = false;
    attempt_ = attempt;
    SendReady();
  }

  void SendCommitted() {
    DecodeResponse response;
    response.mutable_committed()->set_attempt(attempt_);
    response.mutable_committed()->set_kv_bytes(1000);  // as the fake prefill worker says
    Send(response);
  }

  void SendReady() {
    DecodeResponse response;
    response.mutable_ready()->set_attempt(attempt_);
    Send(response);
    if (!plan_.stall_transfer) return;
    DecodeResponse stalled;
    stalled.mutable_transfer_stalled()->set_attempt(attempt_);
    Send(stalled);
  }

  // Everything that may be sent now, choice by choice.
  void Generate() {
    for (uint32_t choice : open_.sequence().choices()) {
      while (!ended_ && next_.contains(choice)) {
        if (!Advance(choice)) break;
      }
    }
    if (next_.empty() && !ended_) End(grpc::Status::OK);
  }

  bool Advance(uint32_t choice) {
    const int32_t index = next_[choice];
    if (plan_.hang_at && index >= *plan_.hang_at) return false;
    if (index - delivered_[choice] >= 256) return false;
    if (plan_.lose_at && index >= *plan_.lose_at) return End(plan_.lose_with), false;
    if (plan_.preempt_at && index >= *plan_.preempt_at) {
      DecodeResponse response;
      response.mutable_preempted()->set_choice(choice);
      Send(response);
      next_.erase(choice);
      return false;
    }
    if (plan_.drain_at && index >= *plan_.drain_at) {
      plan_.drain_at.reset();
      DecodeResponse response;
      response.mutable_draining();
      Send(response);
    }
    ++next_[choice];
    if (plan_.skip_at && index == *plan_.skip_at) return true;
    SendToken(index, choice);
    if (plan_.repeat) SendToken(index, choice);
    if (plan_.lose_at && index + 1 >= *plan_.lose_at) return End(plan_.lose_with), false;
    const auto end = worker_.workers_.EndOf(open_.sequence().sampling(), index, choice);
    if (end == worker::v1::END_REASON_UNSPECIFIED) return true;
    DecodeResponse ended;
    ended.mutable_ended()->set_choice(choice);
    ended.mutable_ended()->set_reason(end);
    ended.mutable_ended()->set_generated(index + 1);
    Send(ended);
    next_.erase(choice);
    return false;
  }

  void Send(const DecodeResponse& response) {
    if (ended_) return;
    outgoing_.push_back(response);
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void End(const grpc::Status& status) {
    if (std::exchange(ended_, true)) return;
    end_ = status;
    if (outgoing_.empty()) Finish(end_);
  }

  FakeDecode& worker_;
  DecodePlan plan_;
  DecodeRequest request_;
  worker::v1::Open open_;
  uint32_t attempt_ = 0;
  bool committed_ = false;
  std::map<uint32_t, int32_t> next_;       // generated index to send, of choices that go on
  std::map<uint32_t, int32_t> delivered_;  // by the router
  std::deque<DecodeResponse> outgoing_;
  bool ended_ = false;
  grpc::Status end_;
};

bool FakeDecode::Commit(const std::string& uuid, uint32_t attempt) {
  const std::lock_guard lock(mutex_);
  const auto stream = by_uuid_.find(uuid);
  return stream != by_uuid_.end() && stream->second->Commit(attempt);
}

FakeDecode::FakeDecode(FakeWorkers& workers, std::string address)
    : FakeWorker(workers, std::move(address), worker::v1::ROLE_DECODE) {
  StartServer(this);
}

FakeDecode::~FakeDecode() { Kill(); }

grpc::ServerBidiReactor<DecodeRequest, DecodeResponse>* FakeDecode::Decode(
    grpc::CallbackServerContext* context) {
  const std::lock_guard lock(mutex_);
  DecodePlan plan;
  if (!plans_.empty()) {
    plan = plans_.front();
    plans_.pop_front();
  }
  headers_.push_back(HeadersOf(*context));
  ++streams_;
  auto* stream = new Stream(*this, plan);
  open_.insert(stream);
  changed_.notify_all();
  return stream;
}

void FakeDecode::Plan(const DecodePlan& plan) {
  const std::lock_guard lock(mutex_);
  plans_.push_back(plan);
}

int FakeDecode::streams() const {
  const std::lock_guard lock(mutex_);
  return streams_;
}

int FakeDecode::open_streams() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(open_.size());
}

int FakeDecode::promised_all() const {
  const std::lock_guard lock(mutex_);
  return promised_all_;
}

std::set<uint32_t> FakeDecode::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

int32_t FakeDecode::tokens_sent() const {
  const std::lock_guard lock(mutex_);
  return tokens_sent_;
}

std::vector<std::string> FakeDecode::headers(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return Values(headers_, key);
}

void FakeDecode::WaitOpenStreams(int count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return static_cast<int>(open_.size()) == count; });
}

void FakeDecode::WaitTokensSent(int32_t count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tokens_sent_ >= count; });
}

}  // namespace setu::test
