// SPDX-License-Identifier: Apache-2.0
// The way of spans to a collector: gathered into batches, one call at a time, tried again where
// that can help. Bounded; whoever has spans never waits, and what finds no room is dropped and
// counted. Its coroutine runs on a loop of its owner's.
//
//   BatchSender sender(loop, collector, {}, "127.0.0.1:4317", logger);   // before the loop runs
//   sender.Add(std::move(spans_of_a_trace));         // any thread
//   sender.Finish();                                 // any thread: no spans come any more
//   if (!sender.WaitFinished(std::chrono::seconds(2))) sender.Stop();
#ifndef SETU_COMMON_TRACING_BATCH_SENDER_H_
#define SETU_COMMON_TRACING_BATCH_SENDER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/logging/logger.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/mailbox.h"
#include "common/rpc/open_call.h"
#include "common/rpc/task.h"
#include "common/tracing/span.h"

namespace setu::tracing {

// Of a batch that a collector took.
struct Taken {
  int64_t rejected = 0;  // spans that it will never take
  std::string why;
};

class Collector {
 public:
  using Done = std::function<void(absl::StatusOr<Taken>)>;

  virtual ~Collector() = default;
  // On the loop's thread, as `done`. The spans must outlive the call.
  virtual std::unique_ptr<rpc::OpenCall> Export(std::span<const Span> spans, TimePoint deadline,
                                                Done done) = 0;
};

struct BatchOptions {
  size_t max_spans = 4096;  // kept, those on their way too
  size_t batch_spans = 512;
  Duration batch_age = std::chrono::seconds(1);  // a span waits no longer for others
  Duration call_timeout = std::chrono::seconds(10);
  int32_t tries = 5;  // of a batch
  Duration first_backoff = std::chrono::seconds(1);
  Duration longest_backoff = std::chrono::seconds(30);
};

// Of spans; each ends in one of them.
struct BatchFigures {
  uint64_t exported = 0;
  uint64_t no_room = 0;      // dropped: too many were kept
  uint64_t undelivered = 0;  // dropped: the collector did not take their batch
  uint64_t rejected = 0;     // by a collector that took the others of their batch
};

class BatchSender {
 public:
  // All references must outlive it. `destination` is for the log, which has a line for each change.
  BatchSender(rpc::EventLoop& loop, Collector& collector, const BatchOptions& options,
              std::string destination, Logger& logger);
  // After the loop's end, which Stop or Finish has let come.
  ~BatchSender() = default;
  BatchSender(const BatchSender&) = delete;
  BatchSender& operator=(const BatchSender&) = delete;

  // Any thread. All spans of a trace, or none of them, go with the same batch.
  void Add(std::vector<Span> trace);
  // Any thread. What waits goes at once, and a call that fails is the last one of its batch.
  void Finish();
  // Any thread. False where something is still on its way after `longest`.
  bool WaitFinished(Duration longest);
  // Any thread. What was not taken is dropped.
  void Stop();
  BatchFigures figures() const;  // any thread

 private:
  struct Finishing {};
  struct Stopped {};
  struct Answer {
    uint64_t call = 0;  // those of earlier calls come too late
    absl::StatusOr<Taken> taken;
  };
  using Event = std::variant<std::vector<Span>, Answer, Finishing, Stopped>;
  enum class Standing : uint8_t { kUnknown, kWell, kFailing };

  rpc::Task<void> Run();
  rpc::Task<void> Gather();
  rpc::Task<void> Deliver();
  rpc::Task<void> Try();
  rpc::Task<void> Rest();
  rpc::Task<void> Next(TimePoint deadline);

  void On(std::vector<Span>& trace);
  void On(Answer& answer);
  void On(Finishing&) { finishing_ = true; }
  void On(Stopped&) { finishing_ = stopped_ = true; }
  void TakeBatch();
  void Took(const Taken& taken);
  void Drop();
  void Tell(const absl::Status& status);
  uint64_t Lost() const { return no_room_ + undelivered_ + rejected_; }
  TimePoint Now() const { return loop_.clock().Now(); }

  rpc::EventLoop& loop_;
  Collector& collector_;
  const BatchOptions options_;
  const std::string destination_;
  Logger& logger_;
  rpc::Mailbox<Event> mailbox_;

  // Of the loop.
  struct Waiting {
    std::vector<Span> spans;
    TimePoint since;
  };
  std::deque<Waiting> waiting_;  // a trace each
  size_t spans_waiting_ = 0;
  std::vector<Span> batch_;  // on its way
  uint64_t call_ = 0;
  std::optional<absl::StatusOr<Taken>> taken_;  // the call's answer
  Duration backoff_;
  Standing standing_ = Standing::kUnknown;
  uint64_t lost_before_ = 0;  // spans, when it began to fail
  bool finishing_ = false;
  bool stopped_ = false;

  std::atomic<size_t> kept_ = 0;  // spans
  std::atomic<uint64_t> exported_ = 0, no_room_ = 0, undelivered_ = 0, rejected_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
};

}  // namespace setu::tracing

#endif  // SETU_COMMON_TRACING_BATCH_SENDER_H_
