// SPDX-License-Identifier: Apache-2.0
#include "services/router/worker_client.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/rpc/mailbox.h"
#include "common/rpc/task.h"

namespace setu::router {
namespace {

using worker::v1::DescribeResponse;
using worker::v1::WatchLoadResponse;

constexpr Duration kDescribeTimeout = std::chrono::seconds(2);
constexpr Duration kWatchLength = std::chrono::hours(24);
constexpr Duration kFirstBackoff = std::chrono::milliseconds(50);
constexpr Duration kLongestBackoff = std::chrono::seconds(1);

struct Stopped {};
using Event =
    std::variant<Stopped, absl::StatusOr<DescribeResponse>, WatchLoadResponse, absl::Status>;

}  // namespace

struct WorkerClient::Watch {
  Watch(rpc::EventLoop& loop, WorkerCalls& calls, const std::string& address,
        Duration report_timeout, WorkerSight sight)
      : loop(loop),
        calls(calls),
        address(address),
        report_timeout(report_timeout),
        sight(std::move(sight)),
        mailbox(loop) {}

  static rpc::Task<void> Run(std::shared_ptr<Watch> self);
  rpc::Task<absl::StatusOr<DescribeResponse>> Describe();
  rpc::Task<std::optional<absl::Status>> Follow(const DescribeResponse& description);

  TimePoint In(Duration wait) const { return loop.clock().Now() + wait; }

  rpc::EventLoop& loop;
  WorkerCalls& calls;
  const std::string address;
  const Duration report_timeout;
  const WorkerSight sight;
  rpc::Mailbox<Event> mailbox;
  Duration backoff = kFirstBackoff;
  bool stopped = false;
};

rpc::Task<void> WorkerClient::Watch::Run(std::shared_ptr<Watch> self) {
  Watch& watch = *self;
  while (!watch.stopped) {
    absl::StatusOr<DescribeResponse> description = co_await watch.Describe();
    std::optional<absl::Status> end = description.status();
    if (end->ok()) end = co_await watch.Follow(*description);
    if (watch.stopped) break;
    if (!end) continue;
    watch.sight.lost(*end);
    const TimePoint again = watch.In(watch.backoff);
    watch.backoff = std::min(2 * watch.backoff, kLongestBackoff);
    // Only the handle's end can arrive here.
    std::optional<Event> event = co_await watch.mailbox.Next(again);
  }
}

// OK only with a description.
rpc::Task<absl::StatusOr<DescribeResponse>> WorkerClient::Watch::Describe() {
  const rpc::CallOptions options{In(kDescribeTimeout), {}};
  auto answered = [this](absl::StatusOr<DescribeResponse> answer) {
    mailbox.Put(std::move(answer));
  };
  const std::unique_ptr<rpc::OpenCall> call = calls.Describe(address, options, std::move(answered));
  const TimePoint deadline = In(2 * kDescribeTimeout);
  std::optional<Event> event = co_await mailbox.Next(deadline);
  if (stopped) co_return absl::CancelledError("stopped");
  if (!event) co_return absl::UnavailableError("Describe was not answered");
  co_return std::get<absl::StatusOr<DescribeResponse>>(*std::move(event));
}

// Passes reports on until they end; says how. nullopt: nothing is wrong with the worker.
rpc::Task<std::optional<absl::Status>> WorkerClient::Watch::Follow(
    const DescribeResponse& description) {
  const rpc::CallOptions options{In(kWatchLength), {}};
  rpc::StreamEvents<WatchLoadResponse> events;
  events.read = [this](WatchLoadResponse& report) { mailbox.Put(report); };
  events.done = [this](const absl::Status& status) { mailbox.Put(status); };
  const std::unique_ptr<rpc::ReadableCall> reports =
      calls.WatchLoad(address, options, std::move(events));
  while (true) {
    reports->Read();
    const TimePoint deadline = In(report_timeout);
    std::optional<Event> event = co_await mailbox.Next(deadline);
    if (stopped) co_return absl::CancelledError("stopped");
    if (!event) {
      const std::chrono::duration<double> silent(report_timeout);
      co_return absl::UnavailableError(absl::StrCat("no load report for ", silent.count(), " s"));
    }
    if (std::holds_alternative<absl::Status>(*event)) {
      const absl::Status end = std::get<absl::Status>(*event);
      if (absl::IsDeadlineExceeded(end)) co_return std::nullopt;  // kWatchLength has passed
      co_return end.ok() ? absl::UnavailableError("the worker ended its load reports") : end;
    }
    backoff = kFirstBackoff;
    if (!sight.seen(description, std::get<WatchLoadResponse>(*event))) co_return std::nullopt;
  }
}

WorkerClient::WorkerClient(rpc::EventLoop& loop, WorkerCalls& calls, const std::string& address,
                           Duration report_timeout, WorkerSight sight)
    : watch_(std::make_shared<Watch>(loop, calls, address, report_timeout, std::move(sight))) {
  rpc::Spawn(Watch::Run(watch_));
}

WorkerClient::~WorkerClient() {
  watch_->stopped = true;
  watch_->mailbox.Put(Stopped{});
}

}  // namespace setu::router
