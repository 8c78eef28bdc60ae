// SPDX-License-Identifier: Apache-2.0
// A few threads for work that takes its time (templates, tokenising), away from the owner's.
// Tenants take turns.
//
//   TokenisingPool pool(/*threads=*/2, /*capacity=*/1024);
//   if (!pool.Run(tenant, [=] { ... })) return Exhausted("too many at once");
#ifndef SETU_SERVICES_ROUTER_TOKENISING_POOL_H_
#define SETU_SERVICES_ROUTER_TOKENISING_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace setu::router {

class TokenisingPool {
 public:
  using Job = absl::AnyInvocable<void()>;

  // At most `capacity` jobs wait; of one tenant no more than there is room left, so that others
  // always find some.
  TokenisingPool(int threads, size_t capacity);
  // Runs what waits, then ends.
  ~TokenisingPool();

  // Any thread. False, and nothing kept, where too many wait.
  [[nodiscard]] bool Run(uint32_t tenant, Job job);

 private:
  void Work();
  Job Next();  // whose turn it is; the lock is held
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<uint32_t, std::deque<Job>> lines_;  // of tenants with jobs
  std::deque<uint32_t> turns_;                 // of the same
  size_t waiting_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_TOKENISING_POOL_H_
