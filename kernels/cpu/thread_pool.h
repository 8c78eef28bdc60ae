// SPDX-License-Identifier: Apache-2.0
// Threads that share out the pieces of one op: the caller and `threads` - 1 helpers. Between ops a
// helper spins for at most 20 us, then sleeps, so an idle process uses no CPU. Pieces are claimed
// one by one: a helper that is asleep or not scheduled delays nobody.
//
//   ThreadPool pool(2);
//   pool.ForEach(tiles, [&](int64_t tile, int thread) { ... });  // thread < pool.threads()
//
// Given cores, each helper runs on its own alone, and so does the caller once it says so; else the
// system moves them as it likes. ForEach is called by one thread at a time; bodies must not call
// it. While a body runs, MXCSR is to nearest even, with subnormals flushed (rule 3 of the numeric
// paths).
#ifndef SETU_KERNELS_CPU_THREAD_POOL_H_
#define SETU_KERNELS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace setu::kernels {

class ThreadPool {
 public:
  // `cpus`: of each thread, the caller's first; empty: none is pinned. A refusal of the system
  // costs speed alone.
  explicit ThreadPool(int threads, std::vector<int> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Pins the calling thread, which calls ForEach from now on. What it starts would inherit that.
  void AdoptCaller() const;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(i, thread) for each i in [0, count), count < 2^32, and returns when all are done.
  template <class Body>
  void ForEach(int64_t count, const Body& body) {
    Run(
        count,
        [](const void* b, int64_t i, int thread) { (*static_cast<const Body*>(b))(i, thread); },
        &body);
  }

 private:
  using Call = void (*)(const void* body, int64_t i, int thread);

  // What is written by one thread while another reads or writes what stands beside it would go to
  // and fro between their caches.
  static constexpr size_t kCacheLine = 64;

  void Run(int64_t count, Call call, const void* body);
  void RunPieces(int thread);
  void Help(int thread);

  // Changes when there may be work; what helpers sleep on.
  alignas(kCacheLine) std::atomic<uint32_t> job_{0};
  std::atomic<bool> stopping_{false};

  // The job's fields are read before a piece is claimed; a claim succeeds only if the job is still
  // theirs.
  alignas(kCacheLine) std::atomic<uint32_t> count_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<const void*> body_{nullptr};

  // The job in the high half, the next piece in the low half; kNoPieces while none can be claimed.
  alignas(kCacheLine) std::atomic<uint64_t> ticket_;
  // Pieces of this job that are finished.
  alignas(kCacheLine) std::atomic<uint32_t> done_{0};

  alignas(kCacheLine) const std::vector<int> cpus_;
  std::vector<std::thread> helpers_;
};

}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_THREAD_POOL_H_
