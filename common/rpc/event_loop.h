// SPDX-License-Identifier: Apache-2.0
// The thread that owns a service's state: closures posted from anywhere and monotonic timers run
// here, one at a time, so what they touch needs no lock.
//
//   EventLoop loop(clock, /*capacity=*/4096);
//   std::thread owner([&] { loop.Run(); });
//   if (!loop.Post([&] { Admit(); })) return Overloaded();  // any thread
//   loop.At(deadline, [&] { Expire(); });                   // the owner
//   loop.Stop();                                            // any thread
#ifndef SETU_COMMON_RPC_EVENT_LOOP_H_
#define SETU_COMMON_RPC_EVENT_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "common/base/clock.h"
#include "common/base/inbox.h"

namespace setu::rpc {

class EventLoop {
 public:
  using Closure = absl::AnyInvocable<void()>;
  using Timer = std::pair<TimePoint, uint64_t>;

  // At most `capacity` closures wait before Post refuses. The clock must outlive the loop.
  EventLoop(const Clock& clock, size_t capacity);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Any thread. For what the outside starts: false, and nothing kept, where the loop is behind.
  [[nodiscard]] bool Post(Closure closure) { return inbox_.Push(std::move(closure)); }
  // Any thread. For ends and answers of what the owner started: their number is bounded by that.
  void PostCompletion(Closure closure) { inbox_.PushUnbounded(std::move(closure)); }

  // The owner only. Runs the closure once, not before `when`.
  Timer At(TimePoint when, Closure closure);
  // The owner only. Nothing happens where the timer ran already.
  void Cancel(const Timer& timer) { timers_.erase(timer); }
  // The owner only. A call in flight that will post once more: Run returns after its end.
  void Hold() { ++holds_; }
  void Release() { --holds_; }

  // The owner only, where it does not Run: what was posted and what is due. False: there was
  // nothing, and nothing is to do before the next post or timer.
  bool Turn();
  std::optional<TimePoint> next_timer() const;
  // Makes the calling thread the owner until Stop, and further until all holds are released and
  // nothing that was posted is left. Timers that are not due by then never run.
  void Run();
  // Any thread. What was posted before still runs.
  void Stop();

  const Clock& clock() const { return clock_; }

 private:
  bool RunPosted();  // false where there was nothing
  bool RunDueTimers();
  std::optional<TimePoint> NextWake() const;

  const Clock& clock_;
  Inbox<Closure> inbox_;
  std::map<Timer, Closure> timers_;
  uint64_t next_timer_ = 0;
  int64_t holds_ = 0;
  bool running_ = true;
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_EVENT_LOOP_H_
