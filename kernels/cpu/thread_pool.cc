// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <xmmintrin.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "kernels/check.h"

namespace setu::kernels {
namespace {

constexpr uint32_t kNoPieces = UINT32_MAX;

uint64_t Ticket(uint32_t job, uint32_t piece) { return uint64_t{job} << 32 | piece; }

// All exceptions masked, to nearest even, FTZ (bit 15) and DAZ (bit 6), while it lives.
class FloatMode {
 public:
  FloatMode() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80u | 0x8000u | 0x0040u); }
  ~FloatMode() { _mm_setcsr(before_); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  const uint32_t before_;
};

// Spins while value == old, at most 20 us. False: it is still old.
bool SpinWhile(const std::atomic<uint32_t>& value, uint32_t old) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
  do {
    for (int i = 0; i < 32; ++i) {
      if (value.load(std::memory_order_acquire) != old) return true;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

void Pin(pthread_t thread, int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  pthread_setaffinity_np(thread, sizeof(one), &one);
}

}  // namespace

ThreadPool::ThreadPool(int threads, std::vector<int> cpus)
    : ticket_(Ticket(0, kNoPieces)), cpus_(std::move(cpus)) {
  SETU_KERNEL_CHECK(threads >= 1, "a pool has the caller's thread");
  SETU_KERNEL_CHECK(cpus_.empty() || std::ssize(cpus_) == threads, "each thread has its core");
  for (int i = 1; i < threads; ++i) {
    helpers_.emplace_back([this, i] { Help(i); });
    if (!cpus_.empty()) Pin(helpers_.back().native_handle(), cpus_[i]);
  }
}

void ThreadPool::AdoptCaller() const {
  if (!cpus_.empty()) Pin(pthread_self(), cpus_[0]);
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::Run(int64_t count, Call call, const void* body) {
  SETU_KERNEL_CHECK(count >= 0 && count < kNoPieces, "pieces of a job are counted in 32 bits");
  const FloatMode mode;
  if (count <= 1 || helpers_.empty()) {
    for (int64_t i = 0; i < count; ++i) call(body, i, 0);
    return;
  }
  const uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  const uint32_t pieces = static_cast<uint32_t>(count);
  // Shut before the fields change (release), so that no claim mixes two jobs.
  ticket_.store(Ticket(job, kNoPieces), std::memory_order_relaxed);
  count_.store(pieces, std::memory_order_release);
  call_.store(call, std::memory_order_release);
  body_.store(body, std::memory_order_release);
  done_.store(0, std::memory_order_release);
  ticket_.store(Ticket(job, 0), std::memory_order_release);
  job_.store(job, std::memory_order_release);
  job_.notify_all();

  RunPieces(0);
  for (uint32_t done = done_.load(std::memory_order_acquire); done != pieces;
       done = done_.load(std::memory_order_acquire)) {
    if (!SpinWhile(done_, done)) done_.wait(done, std::memory_order_acquire);
  }
}

// Until none is left. A job with a claimed piece cannot end before that piece is counted, so all
// that were run are of the last job seen, and are counted at once.
void ThreadPool::RunPieces(int thread) {
  uint32_t ran = 0, count = 0;
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (true) {
    const uint32_t piece = static_cast<uint32_t>(ticket);
    const Call call = call_.load(std::memory_order_acquire);
    const void* body = body_.load(std::memory_order_acquire);
    count = count_.load(std::memory_order_acquire);
    if (piece >= count) break;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;
    }
    call(body, piece, thread);
    ++ran;
    ticket = ticket_.load(std::memory_order_acquire);
  }
  if (ran == 0) return;
  if (done_.fetch_add(ran, std::memory_order_acq_rel) + ran == count) done_.notify_all();
}

void ThreadPool::Help(int thread) {
  const FloatMode mode;
  uint32_t seen = 0;
  while (true) {
    if (!SpinWhile(job_, seen)) job_.wait(seen, std::memory_order_acquire);
    seen = job_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    RunPieces(thread);
  }
}

}  // namespace setu::kernels
