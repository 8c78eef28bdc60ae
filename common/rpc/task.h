// SPDX-License-Identifier: Apache-2.0
// A coroutine that computes a T: lazy (it starts when awaited), move-only, and owned by whoever
// holds the Task. It belongs to one thread.
//
//   Task<int> Half(Mailbox<int>& in) { ... co_return n / 2; }
//   Task<void> Flow(Mailbox<int>& in) { int n = co_await Half(in); ... }
//   Spawn(Flow(in));   // runs at once to its first wait; frees itself at its end
//
// Keep what is awaited simple: named arguments, no aggregates or initializer lists inside a
// co_await expression. g++ 12 destroys such temporaries twice.
#ifndef SETU_COMMON_RPC_TASK_H_
#define SETU_COMMON_RPC_TASK_H_

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace setu::rpc {

template <typename T>
class Task;

namespace task_internal {

// Resumes whoever waits. A task that ends before its first wait returns to its caller instead, so
// that awaiting any number of such tasks in a loop keeps the stack as it is. (Symmetric transfer
// would do the same, but g++ makes it a tail call only from -O2 on.)
struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  void await_suspend(std::coroutine_handle<Promise> done) const noexcept {
    if (auto waiting = done.promise().continuation) waiting.resume();
  }
  void await_resume() const noexcept {}
};

struct PromiseBase {
  std::coroutine_handle<> continuation;  // set once the caller is suspended
  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  // Nothing of ours throws, and what libraries throw is caught where they are called.
  void unhandled_exception() const noexcept { std::terminate(); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  void return_value(T result) { value.emplace(std::move(result)); }
  T Take() { return *std::move(value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void Take() const noexcept {}
};

// Starts itself and nobody waits for it.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

}  // namespace task_internal

template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = task_internal::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  struct Awaiter {
    Handle handle;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> caller) const {
      handle.resume();
      if (handle.done()) return false;
      handle.promise().continuation = caller;
      return true;
    }
    T await_resume() const { return handle.promise().Take(); }
  };
  Awaiter operator co_await() const noexcept { return Awaiter{handle_}; }

 private:
  Handle handle_;
};

namespace task_internal {

template <typename T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(Task<T>::Handle::from_promise(*this));
}

inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(Task<void>::Handle::from_promise(*this));
}

inline Detached RunDetached(Task<void> task) { co_await task; }

}  // namespace task_internal

// Starts a task that frees itself at its end.
inline void Spawn(Task<void> task) { task_internal::RunDetached(std::move(task)); }

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_TASK_H_
