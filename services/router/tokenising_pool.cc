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

bool TokenisingPool::Run(uint32_t tenant, Job job) {
  const std::lock_guard lock(mutex_);
  const auto line = lines_.find(tenant);
  const size_t its = line == lines_.end() ? 0 : line->second.size();
  if (waiting_ + its >= capacity_) return false;
  if (its == 0) turns_.push_back(tenant);
  lines_[tenant].push_back(std::move(job));
  ++waiting_;
  arrived_.notify_one();
  return true;
}

TokenisingPool::Job TokenisingPool::Next() {
  const uint32_t tenant = turns_.front();
  turns_.pop_front();
  const auto line = lines_.find(tenant);
  Job job = std::move(line->second.front());
  line->second.pop_front();
  --waiting_;
  if (line->second.empty()) {
    lines_.erase(line);
  } else {
    turns_.push_back(tenant);
  }
  return job;
}

void TokenisingPool::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [this] { return stopping_ || waiting_ > 0; });
    if (waiting_ == 0) return;
    Job job = Next();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
}

}  // namespace setu::router
