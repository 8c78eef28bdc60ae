// SPDX-License-Identifier: Apache-2.0
#include "services/router/tokenising_pool.h"

#include <utility>

namespace setu::router {

TokenisingPool::TokenisingPool(int threads, size_t capacity) : capacity_(capacity) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

TokenisingPool::~TokenisingPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool TokenisingPool::Run(Job job) {
  const std::lock_guard lock(mutex_);
  if (jobs_.size() >= capacity_) return false;
  jobs_.push_back(std::move(job));
  arrived_.notify_one();
  return true;
}

void TokenisingPool::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
}

}  // namespace setu::router
