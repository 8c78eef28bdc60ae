// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tests/support/fake_workers.h"

namespace setu::test {

using worker::v1::PrefillRequest;
using worker::v1::PrefillResponse;

class FakePrefill::Call final : public grpc::ServerWriteReactor<PrefillResponse> {
 public:
  using Point = PrefillPlan::Point;

  Call(FakePrefill& worker, PrefillRequest request, PrefillPlan plan)
      : worker_(worker), request_(std::move(request)), plan_(std::move(plan)) {
    if (Stops(Point::kBefore)) return;
    if (plan_.mute) {
      Push();
      return;
    }
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
    if (message_.has_push_failed()) {
      return End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the push failed"));
    }
    if (Stops(Point::kAfterFirst)) return;
    if (all_ended_) return End(grpc::Status::OK);
    if (!Push()) {
      message_.mutable_push_failed();
      return StartWrite(&message_);
    }
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
    if (worker_.DoesNotReach(request_.decode_address())) return false;
    FakeDecode* decode = worker_.workers_.DecodeAt(request_.decode_address());
    return decode != nullptr && decode->Commit(request_.sequence().uuid(), request_.attempt());
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

grpc::ServerWriteReactor<PrefillResponse>* FakePrefill::Prefill(
    grpc::CallbackServerContext* context, const PrefillRequest* request) {
  PrefillPlan plan;
  {
    const std::lock_guard lock(mutex_);
    if (!plans_.empty()) {
      plan = plans_.front();
      plans_.pop_front();
    }
    requests_.push_back(*request);
    headers_.push_back(HeadersOf(*context));
    ++open_;
  }
  changed_.notify_all();
  return new Call(*this, *request, plan);
}

void FakePrefill::Plan(const PrefillPlan& plan) {
  const std::lock_guard lock(mutex_);
  plans_.push_back(plan);
}

void FakePrefill::CutOff(const std::string& decode) {
  const std::lock_guard lock(mutex_);
  unreached_.insert(decode);
}

void FakePrefill::Reconnect() {
  const std::lock_guard lock(mutex_);
  unreached_.clear();
}

bool FakePrefill::DoesNotReach(const std::string& decode) const {
  const std::lock_guard lock(mutex_);
  return unreached_.contains(decode);
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

std::vector<std::string> FakePrefill::headers(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return Values(headers_, key);
}

void FakePrefill::WaitCalls(int count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return static_cast<int>(requests_.size()) >= count; });
}

void FakePrefill::WaitOpenCalls(int count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return open_ == count; });
}

}  // namespace setu::test
