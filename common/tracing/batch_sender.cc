// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/batch_sender.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace setu::tracing {
namespace {

// A call ends by its deadline; that it ended takes a moment to arrive.
constexpr Duration kForTheAnswer = std::chrono::seconds(1);
// A wait for the first span ends now and then, and begins again.
constexpr Duration kLongWait = std::chrono::hours(1);

// OTLP's table of codes. A collector without resources is asked again only where it says when;
// that is not looked at.
bool MayHelpToTryAgain(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

BatchSender::BatchSender(rpc::EventLoop& loop, Collector& collector, const BatchOptions& options,
                         std::string destination, Logger& logger)
    : loop_(loop),
      collector_(collector),
      options_(options),
      destination_(std::move(destination)),
      logger_(logger),
      mailbox_(loop),
      backoff_(options.first_backoff) {
  loop_.PostCompletion([this] { rpc::Spawn(Run()); });
}

void BatchSender::Add(std::vector<Span> trace) {
  const size_t spans = trace.size();
  if (kept_.fetch_add(spans) + spans > options_.max_spans) {
    kept_ -= spans;
    no_room_ += spans;
    return;
  }
  loop_.PostCompletion(
      [this, trace = std::move(trace)]() mutable { mailbox_.Put(std::move(trace)); });
}

void BatchSender::Finish() {
  loop_.PostCompletion([this] { mailbox_.Put(Finishing{}); });
}

void BatchSender::Stop() {
  loop_.PostCompletion([this] { mailbox_.Put(Stopped{}); });
}

bool BatchSender::WaitFinished(Duration longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return finished_; });
}

BatchFigures BatchSender::figures() const {
  return {.exported = exported_,
          .no_room = no_room_,
          .undelivered = undelivered_,
          .rejected = rejected_};
}

rpc::Task<void> BatchSender::Run() {
  while (!finishing_ || !waiting_.empty()) {
    co_await Gather();
    TakeBatch();
    co_await Deliver();
  }
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

// Until there is enough for a batch, or the first span has waited long enough.
rpc::Task<void> BatchSender::Gather() {
  while (!finishing_ && spans_waiting_ < options_.batch_spans) {
    const TimePoint deadline =
        waiting_.empty() ? Now() + kLongWait : waiting_.front().since + options_.batch_age;
    if (Now() >= deadline) co_return;
    co_await Next(deadline);
  }
}

// Whole traces, one at least.
void BatchSender::TakeBatch() {
  while (!waiting_.empty()) {
    std::vector<Span>& trace = waiting_.front().spans;
    if (!batch_.empty() && batch_.size() + trace.size() > options_.batch_spans) return;
    spans_waiting_ -= trace.size();
    std::move(trace.begin(), trace.end(), std::back_inserter(batch_));
    waiting_.pop_front();
  }
}

// The batch is taken by the collector, or dropped.
rpc::Task<void> BatchSender::Deliver() {
  for (int32_t tries = 1; !batch_.empty() && !stopped_; ++tries) {
    co_await Try();
    if (stopped_) break;
    if (taken_->ok()) co_return Took(**taken_);
    const absl::Status why = taken_->status();
    Tell(why);
    if (finishing_ || tries >= options_.tries || !MayHelpToTryAgain(why)) break;
    co_await Rest();
  }
  Drop();
}

rpc::Task<void> BatchSender::Try() {
  taken_.reset();
  const TimePoint deadline = Now() + options_.call_timeout;
  const TimePoint last = deadline + kForTheAnswer;
  auto done = [this, call = ++call_](absl::StatusOr<Taken> taken) {
    mailbox_.Put(Answer{call, std::move(taken)});
  };
  const std::unique_ptr<rpc::OpenCall> call = collector_.Export(batch_, deadline, std::move(done));
  while (!taken_ && !stopped_ && Now() < last) co_await Next(last);
  if (!taken_) taken_ = absl::DeadlineExceededError("it does not answer");
}

rpc::Task<void> BatchSender::Rest() {
  const TimePoint until = Now() + backoff_;
  backoff_ = std::min(2 * backoff_, options_.longest_backoff);
  while (!finishing_ && Now() < until) co_await Next(until);
}

// Takes in what has arrived, or comes at the deadline.
rpc::Task<void> BatchSender::Next(TimePoint deadline) {
  std::optional<Event> event = co_await mailbox_.Next(deadline);
  if (event) std::visit([this](auto& e) { On(e); }, *event);
}

void BatchSender::On(std::vector<Span>& trace) {
  spans_waiting_ += trace.size();
  waiting_.push_back({std::move(trace), Now()});
}

void BatchSender::On(Answer& answer) {
  if (answer.call == call_) taken_ = std::move(answer.taken);
}

void BatchSender::Took(const Taken& taken) {
  const uint64_t spans = batch_.size();
  const auto rejected =
      static_cast<uint64_t>(std::clamp<int64_t>(taken.rejected, 0, std::ssize(batch_)));
  exported_ += spans - rejected;
  rejected_ += rejected;
  kept_ -= spans;
  batch_.clear();
  backoff_ = options_.first_backoff;
  Tell(rejected == 0 ? absl::OkStatus()
                     : absl::InvalidArgumentError(
                           absl::StrCat("it rejected ", rejected, " spans: ", taken.why)));
}

void BatchSender::Drop() {
  undelivered_ += batch_.size();
  kept_ -= batch_.size();
  batch_.clear();
}

void BatchSender::Tell(const absl::Status& status) {
  const Standing now = status.ok() ? Standing::kWell : Standing::kFailing;
  const Standing before = std::exchange(standing_, now);
  if (now == before) return;
  if (now == Standing::kFailing) {
    lost_before_ = Lost();
    const std::string_view why(status.message().data(), status.message().size());
    logger_.Warning(
        absl::StrCat("traces do not reach the collector at ", destination_,
                     "; some wait, the others are counted and dropped: ", ShortText(why)));
  } else if (before == Standing::kFailing) {
    logger_.Info(absl::StrCat("traces reach the collector at ", destination_, " again; ",
                              Lost() - lost_before_, " spans were lost"));
  } else {
    logger_.Info(absl::StrCat("traces reach the collector at ", destination_));
  }
}

}  // namespace setu::tracing
