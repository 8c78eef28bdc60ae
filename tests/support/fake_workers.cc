// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_workers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace setu::test {

using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;
using worker::v1::PrefillRequest;
using worker::v1::PrefillResponse;

FakeWorker::FakeWorker(FakeWorkers& workers, std::string address, worker::v1::Role role)
    : workers_(workers), address_(std::move(address)), role_(role) {
  load_.set_ready(true);
  load_.set_blocks_total(1024);
  load_.set_blocks_free(1024);
  load_.set_running_max(64);
}

FakeWorker::~FakeWorker() = default;

void FakeWorker::StartServer(grpc::Service* service) {
  service_ = service;
  worker::v1::DescribeResponse description;
  description.set_role(role_);
  description.set_incarnation(absl::StrCat(address_, "#", ++incarnation_));
  *description.mutable_fingerprint() = workers_.fingerprint;
  description.set_model_name("letters");
  description.set_context_length(512);
  description.set_pool_tokens(1024 * 16);
  description.set_wire_version_min(1);
  description.set_wire_version_max(1);
  worker_service_ = std::make_unique<worker::WorkerService>(description, [] {});
  worker_service_->Publish(load_);
  auto server = rpc::Server::Start({}, {service, worker_service_.get()});
  SETU_CHECK(server.ok(), "an in-process server starts");
  server_ = *std::move(server);
  workers_.network().Put(address_, server_.get());
}

void FakeWorker::Report(worker::v1::WatchLoadResponse load) {
  load_ = std::move(load);
  worker_service_->Publish(load_);
}

void FakeWorker::Kill() {
  if (server_ == nullptr) return;
  workers_.network().TakeOff(address_);
  worker_service_->EndWatches();
  server_->Shutdown(Duration::zero());  // cancels every call
  server_ = nullptr;
  worker_service_ = nullptr;
}

void FakeWorker::Restart() {
  Kill();
  StartServer(service_);
}

// --- Decode ---

class FakeDecode::Stream final : public grpc::ServerBidiReactor<DecodeRequest, DecodeResponse> {
 public:
  Stream(FakeDecode& worker, DecodePlan plan) : worker_(worker), plan_(std::move(plan)) {
    StartRead(&request_);
  }

  // The KV arrived. False where this attempt is not the current one.
  bool Commit(uint32_t attempt) {
    if (attempt != attempt_ || ended_ || plan_.stall_transfer) return false;
    committed_ = true;
    if (!plan_.forget_retry) Generate();
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
    worker_.by_uuid_[open.sequence().uuid()] = this;
    const int32_t generated = open.sequence().ids_size() - open.sequence().prompt_length();
    for (uint32_t choice : open.sequence().choices()) {
      next_[choice] = delivered_[choice] = generated;
    }
    if (plan_.refuse) return End(*plan_.refuse);
    if (!plan_.mute) SendReady();
  }

  void Retry(uint32_t attempt) {
    plan_.stall_transfer = false;
    if (committed_ && !plan_.forget_retry) {
      DecodeResponse response;
      response.mutable_committed()->set_attempt(attempt_);
      return Send(response);
    }
    plan_.forget_retry = committed_ = false;
    attempt_ = attempt;
    SendReady();
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
    DecodeResponse response;
    response.mutable_tokens()->set_choice(choice);
    response.mutable_tokens()->set_first_index(index);
    response.mutable_tokens()->add_tokens()->set_id(worker_.workers_.TokenAt(index, choice));
    Send(response);
    if (plan_.repeat) Send(response);
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
  const auto id = context->client_metadata().find("x-request-id");
  request_ids_.push_back(id == context->client_metadata().end()
                             ? ""
                             : std::string(id->second.data(), id->second.size()));
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

std::set<uint32_t> FakeDecode::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

int32_t FakeDecode::tokens_sent() const {
  const std::lock_guard lock(mutex_);
  return tokens_sent_;
}

std::vector<std::string> FakeDecode::request_ids() const {
  const std::lock_guard lock(mutex_);
  return request_ids_;
}

void FakeDecode::WaitOpenStreams(int count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return static_cast<int>(open_.size()) == count; });
}

void FakeDecode::WaitTokensSent(int32_t count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tokens_sent_ >= count; });
}

// --- Prefill ---

class FakePrefill::Call final : public grpc::ServerWriteReactor<PrefillResponse> {
 public:
  using Point = PrefillPlan::Point;

  Call(FakePrefill& worker, PrefillRequest request, PrefillPlan plan)
      : worker_(worker), request_(std::move(request)), plan_(std::move(plan)) {
    if (Stops(Point::kBefore)) return;
    PrefillResponse response;
    const int32_t generated =
        request_.sequence().ids_size() - static_cast<int32_t>(request_.sequence().prompt_length());
    for (uint32_t choice : request_.sequence().choices()) {
      auto& first = *response.mutable_first_tokens()->add_tokens();
      first.set_choice(choice);
      first.mutable_token()->set_id(worker_.workers_.TokenAt(generated, choice));
      first.set_end(worker_.workers_.EndOf(request_.sequence().sampling(), generated, choice));
      all_ended_ &= first.end() != worker::v1::END_REASON_UNSPECIFIED;
    }
    message_ = response;
    StartWrite(&message_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
    if (message_.has_pushed()) return End(grpc::Status::OK);
    if (Stops(Point::kAfterFirst)) return;
    if (all_ended_) return End(grpc::Status::OK);
    if (!Push()) return End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the push was refused"));
    if (Stops(Point::kAfterCommit)) return;
    message_.mutable_pushed()->set_kv_bytes(1000);
    StartWrite(&message_);
  }

  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")); }

  void OnDone() override {
    {
      const std::lock_guard lock(worker_.mutex_);
      --worker_.open_;
    }
    worker_.changed_.notify_all();
    delete this;
  }

 private:
  bool Stops(Point point) {
    if (plan_.fail == point) End(plan_.fail_with);
    return plan_.fail == point || plan_.hang == point;
  }

  bool Push() {
    FakeDecode* decode = worker_.workers_.DecodeAt(request_.decode_address());
    if (decode == nullptr) return false;
    const std::lock_guard lock(decode->mutex_);
    const auto stream = decode->by_uuid_.find(request_.sequence().uuid());
    return stream != decode->by_uuid_.end() && stream->second->Commit(request_.attempt());
  }

  void End(const grpc::Status& status) {
    const std::lock_guard lock(worker_.mutex_);
    if (!std::exchange(ended_, true)) Finish(status);
  }

  FakePrefill& worker_;
  const PrefillRequest request_;
  const PrefillPlan plan_;
  PrefillResponse message_;
  bool all_ended_ = true;
  bool ended_ = false;
};

FakePrefill::FakePrefill(FakeWorkers& workers, std::string address)
    : FakeWorker(workers, std::move(address), worker::v1::ROLE_PREFILL) {
  StartServer(this);
}

FakePrefill::~FakePrefill() { Kill(); }

grpc::ServerWriteReactor<PrefillResponse>* FakePrefill::Prefill(grpc::CallbackServerContext*,
                                                                const PrefillRequest* request) {
  PrefillPlan plan;
  {
    const std::lock_guard lock(mutex_);
    if (!plans_.empty()) {
      plan = plans_.front();
      plans_.pop_front();
    }
    requests_.push_back(*request);
    ++open_;
  }
  changed_.notify_all();
  return new Call(*this, *request, plan);
}

void FakePrefill::Plan(const PrefillPlan& plan) {
  const std::lock_guard lock(mutex_);
  plans_.push_back(plan);
}

int FakePrefill::calls() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(requests_.size());
}

int FakePrefill::open_calls() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

std::vector<PrefillRequest> FakePrefill::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FakePrefill::WaitCalls(int count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return static_cast<int>(requests_.size()) >= count; });
}

void FakePrefill::WaitOpenCalls(int count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return open_ == count; });
}

// --- All of them ---

FakeWorkers::FakeWorkers() {
  fingerprint.set_model(1);
  fingerprint.set_tokenizer(2);
  fingerprint.set_numerics("letters/r1");
  fingerprint.mutable_kv_layout()->set_block_tokens(16);
}

FakeWorkers::~FakeWorkers() = default;

FakeDecode& FakeWorkers::AddDecode(const std::string& address) {
  decodes_.push_back(std::make_unique<FakeDecode>(*this, address));
  return *decodes_.back();
}

FakePrefill& FakeWorkers::AddPrefill(const std::string& address) {
  prefills_.push_back(std::make_unique<FakePrefill>(*this, address));
  return *prefills_.back();
}

FakeDecode* FakeWorkers::DecodeAt(const std::string& address) {
  for (const auto& decode : decodes_) {
    if (decode->address() == address) return decode.get();
  }
  return nullptr;
}

uint32_t FakeWorkers::TokenAt(int32_t generated, uint32_t choice) const {
  if (end_ && generated >= end_->first) return end_->second;
  return 'a' + (static_cast<uint32_t>(generated) + 3 * choice) % 26;
}

worker::v1::EndReason FakeWorkers::EndOf(const worker::v1::SamplingParams& sampling,
                                         int32_t generated, uint32_t choice) const {
  const uint32_t id = TokenAt(generated, choice);
  for (uint32_t end : sampling.end_ids()) {
    if (id == end) return worker::v1::END_REASON_END_ID;
  }
  const bool last = generated + 1 >= static_cast<int32_t>(sampling.max_tokens());
  return last ? worker::v1::END_REASON_MAX_TOKENS : worker::v1::END_REASON_UNSPECIFIED;
}

std::string FakeWorkers::Text(int32_t tokens, uint32_t choice) const {
  std::string text;
  for (int32_t i = 0; i < tokens; ++i) text += static_cast<char>(TokenAt(i, choice));
  return text;
}

}  // namespace setu::test
