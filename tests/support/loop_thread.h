// SPDX-License-Identifier: Apache-2.0
// An event loop with its thread, for tests: work is sent to it and waited for.
#ifndef SETU_TESTS_SUPPORT_LOOP_THREAD_H_
#define SETU_TESTS_SUPPORT_LOOP_THREAD_H_

#include <future>
#include <thread>
#include <utility>

#include "common/rpc/event_loop.h"

namespace setu::testing {

class LoopThread {
 public:
  explicit LoopThread(const Clock& clock) : loop(clock, 1024), thread_([this] { loop.Run(); }) {}
  ~LoopThread() { Stop(); }

  // Runs `work` on the loop's thread and returns after it.
  template <typename Work>
  auto Do(Work work) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    loop.PostCompletion([&task] { task(); });
    return result.get();
  }

  void Stop() {
    if (!thread_.joinable()) return;
    loop.Stop();
    thread_.join();
  }

  rpc::EventLoop loop;

 private:
  std::thread thread_;
};

}  // namespace setu::testing

#endif  // SETU_TESTS_SUPPORT_LOOP_THREAD_H_
