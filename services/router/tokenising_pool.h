// SPDX-License-Identifier: Apache-2.0
// A few threads for work that takes its time (templates, tokenising), away from the owner's.
#ifndef SETU_SERVICES_ROUTER_TOKENISING_POOL_H_
#define SETU_SERVICES_ROUTER_TOKENISING_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace setu::router {

class TokenisingPool {
 public:
  using Job = absl::AnyInvocable<void()>;

  // At most `capacity` jobs wait.
  TokenisingPool(int threads, size_t capacity);
  // Runs what waits, then ends.
  ~TokenisingPool();

  // Any thread. False, and nothing kept, where too many wait.
  [[nodiscard]] bool Run(Job job);

 private:
  void Work();
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_TOKENISING_POOL_H_
