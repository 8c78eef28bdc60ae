// SPDX-License-Identifier: Apache-2.0
// The bounded way into a thread that owns state: any thread pushes, the owner drains and waits.
//
//   Inbox<Event> inbox(1024);
//   if (!inbox.Push(std::move(event))) return Overloaded();   // any thread
//   inbox.WaitUntil(next_timer);                              // the owner
//   for (Event& e : inbox.Drain()) Handle(e);
#ifndef SETU_COMMON_BASE_INBOX_H_
#define SETU_COMMON_BASE_INBOX_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace setu {

template <typename T>
class Inbox {
 public:
  explicit Inbox(size_t capacity) : capacity_(capacity) {}

  // False, and nothing kept, where the inbox is full.
  [[nodiscard]] bool Push(T item) {
    std::lock_guard lock(mutex_);
    if (items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    arrived_.notify_one();
    return true;
  }

  // For ends, cancels and answers to the owner's own calls: their number is bounded by the work
  // that Push admitted, so they are never refused.
  void PushUnbounded(T item) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    arrived_.notify_one();
  }

  // All that has arrived, in order; empty where nothing has. The vector is reused by the next call.
  std::vector<T>& Drain() {
    drained_.clear();
    std::lock_guard lock(mutex_);
    std::swap(drained_, items_);
    return drained_;
  }

  // Returns when something has arrived or the time has come.
  void WaitUntil(std::optional<TimePoint> deadline) {
    std::unique_lock lock(mutex_);
    auto ready = [this] { return !items_.empty(); };
    if (deadline) {
      arrived_.wait_until(lock, *deadline, ready);
    } else {
      arrived_.wait(lock, ready);
    }
  }

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<T> items_;
  std::vector<T> drained_;  // the owner's
};

}  // namespace setu

#endif  // SETU_COMMON_BASE_INBOX_H_
