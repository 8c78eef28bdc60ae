// SPDX-License-Identifier: Apache-2.0
#include "common/worker/worker_service.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "common/worker/prefix_feed.h"

namespace setu::worker {
namespace {

constexpr std::chrono::milliseconds kShortestGap(20);
constexpr std::chrono::milliseconds kLongestGap(900);

}  // namespace

// What all watches share. Every watch registers here until it is done; the lock is never held
// across a wait.
struct WorkerService::State {
  const v1::DescribeResponse description;
  const std::function<void()> drain;
  std::mutex mutex = {};
  v1::WatchLoadResponse newest = {};  // `sequence` 0: nothing was published yet
  PrefixFeed feed = {};
  std::set<Watch*> watches = {};
  bool ended = false;
};

// One WatchLoad stream. It is always in one phase, and each phase ends by a callback of gRPC:
//
//   kWriting --written--> kResting (20 ms) --newer report--> kWriting
//                              |--else--> kWaiting (to 0.9 s, or a newer report) --> kWriting
//
// A stream that was cancelled or told to end finishes at the end of its phase.
class WorkerService::Watch final : public grpc::ServerWriteReactor<v1::WatchLoadResponse> {
 public:
  explicit Watch(State& state) : state_(state) {
    std::lock_guard lock(state_.mutex);
    state_.watches.insert(this);
    over_ = state_.ended;
    Advance();
  }

  // With the lock held: a newer report is there, or the stream shall end.
  void Wake(bool over) {
    over_ = over_ || over;
    if (phase_ == Phase::kWaiting || (over_ && phase_ == Phase::kResting)) alarm_->Cancel();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(state_.mutex);
    over_ = over_ || !ok;
    if (over_) return Advance();
    Sleep(Phase::kResting, kShortestGap);
  }
  void OnCancel() override {
    std::lock_guard lock(state_.mutex);
    Wake(true);
  }
  void OnDone() override {
    {
      std::lock_guard lock(state_.mutex);
      state_.watches.erase(this);
    }
    delete this;
  }

 private:
  enum class Phase { kWriting, kResting, kWaiting, kFinished };

  void OnAlarm() {
    std::lock_guard lock(state_.mutex);
    const bool nothing_new = report_.sequence() == state_.newest.sequence();
    if (phase_ == Phase::kResting && nothing_new && !over_) {
      Sleep(Phase::kWaiting, kLongestGap - kShortestGap);
    } else {
      Advance();
    }
  }

  // Writes the newest report, waits for the first one, or finishes.
  void Advance() {
    if (over_) {
      phase_ = Phase::kFinished;
      Finish(state_.ended ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the worker stops")
                          : grpc::Status::OK);
    } else if (state_.newest.sequence() == 0) {
      Sleep(Phase::kWaiting, kLongestGap);
    } else {
      phase_ = Phase::kWriting;
      report_ = state_.newest;
      report_.set_incarnation(state_.description.incarnation());
      const std::optional<uint64_t> before = cursor_;
      v1::PrefixChanges changes = state_.feed.Since(cursor_);
      if (cursor_ != before) report_.mutable_prefixes()->Swap(&changes);
      StartWrite(&report_);
    }
  }

  // A new alarm each time: one that fires may not be set again from its own callback.
  void Sleep(Phase phase, std::chrono::milliseconds time) {
    phase_ = phase;
    alarm_.emplace();
    alarm_->Set(std::chrono::system_clock::now() + time, [this](bool) { OnAlarm(); });
  }

  State& state_;
  Phase phase_ = Phase::kWaiting;
  bool over_ = false;
  v1::WatchLoadResponse report_;    // being sent, or the last that was
  std::optional<uint64_t> cursor_;  // in the feed
  std::optional<grpc::Alarm> alarm_;
};

WorkerService::WorkerService(v1::DescribeResponse description, std::function<void()> drain)
    : state_(new State{.description = std::move(description), .drain = std::move(drain)}) {}

WorkerService::~WorkerService() = default;

void WorkerService::Publish(v1::WatchLoadResponse report,
                            std::span<const kv::PrefixChange> changes) {
  std::lock_guard lock(state_->mutex);
  state_->feed.Append(changes);
  report.set_sequence(state_->newest.sequence() + 1);
  state_->newest = std::move(report);
  for (Watch* watch : state_->watches) watch->Wake(false);
}

void WorkerService::EndWatches() {
  std::lock_guard lock(state_->mutex);
  state_->ended = true;
  for (Watch* watch : state_->watches) watch->Wake(true);
}

grpc::ServerUnaryReactor* WorkerService::Describe(grpc::CallbackServerContext* context,
                                                  const v1::DescribeRequest*,
                                                  v1::DescribeResponse* response) {
  *response = state_->description;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<v1::WatchLoadResponse>* WorkerService::WatchLoad(
    grpc::CallbackServerContext*, const v1::WatchLoadRequest*) {
  return new Watch(*state_);
}

grpc::ServerUnaryReactor* WorkerService::Drain(grpc::CallbackServerContext* context,
                                               const v1::DrainRequest*, v1::DrainResponse*) {
  state_->drain();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace setu::worker
