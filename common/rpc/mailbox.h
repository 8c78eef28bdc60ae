// SPDX-License-Identifier: Apache-2.0
// Where a coroutine waits for what happens to it. One consumer; everything on the loop's thread.
//
//   Mailbox<Event> mailbox(loop);
//   mailbox.Put(Cancelled{});                                        // the loop's thread
//   std::optional<Event> event = co_await mailbox.Next(deadline);    // nullopt: the time has come
//
// Put never runs the consumer inside the caller: it is resumed by the loop's next turn. Senders
// bound what they put (streams are read one message at a time).
#ifndef SETU_COMMON_RPC_MAILBOX_H_
#define SETU_COMMON_RPC_MAILBOX_H_

#include <coroutine>
#include <deque>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/event_loop.h"

namespace setu::rpc {

template <typename Event>
class Mailbox {
 public:
  // The loop must outlive the mailbox, and the mailbox its consumer's wait.
  explicit Mailbox(EventLoop& loop) : loop_(loop) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() { SETU_CHECK(!consumer_, "a mailbox outlives the wait on it"); }

  void Put(Event event) {
    events_.push_back(std::move(event));
    if (!consumer_) return;
    loop_.Cancel(timer_);
    loop_.PostCompletion([consumer = std::exchange(consumer_, nullptr)] { consumer.resume(); });
  }

  struct Awaiter {
    Mailbox& mailbox;
    TimePoint deadline;
    bool await_ready() const {
      return !mailbox.events_.empty() || mailbox.loop_.clock().Now() >= deadline;
    }
    void await_suspend(std::coroutine_handle<> consumer) const {
      mailbox.Suspend(consumer, deadline);
    }
    std::optional<Event> await_resume() const { return mailbox.TakeFirst(); }
  };
  // What has arrived comes first, even where the deadline has passed.
  Awaiter Next(TimePoint deadline) { return Awaiter{*this, deadline}; }

 private:
  void Suspend(std::coroutine_handle<> consumer, TimePoint deadline) {
    SETU_CHECK(!consumer_, "a mailbox has one consumer");
    consumer_ = consumer;
    timer_ = loop_.At(deadline, [this] { std::exchange(consumer_, nullptr).resume(); });
  }

  std::optional<Event> TakeFirst() {
    if (events_.empty()) return std::nullopt;
    std::optional<Event> first(std::move(events_.front()));
    events_.pop_front();
    return first;
  }

  EventLoop& loop_;
  std::deque<Event> events_;
  std::coroutine_handle<> consumer_;
  EventLoop::Timer timer_;
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_MAILBOX_H_
