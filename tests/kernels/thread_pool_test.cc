// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <xmmintrin.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/device.h"

namespace setu::kernels {
namespace {

TEST(ThreadPoolTest, DoesEveryPieceOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int job = 0; job < 2000; ++job) {
      const int count = job % 37;
      std::vector<std::atomic<int>> done(count);
      pool.ForEach(count, [&](int64_t i, int thread) {
        ASSERT_LT(thread, threads);
        done[i].fetch_add(1, std::memory_order_relaxed);
      });
      for (const std::atomic<int>& times : done) ASSERT_EQ(times.load(), 1);
    }
  }
}

// Each thread number is used by one thread at a time: scratch can be indexed by it.
TEST(ThreadPoolTest, ThreadNumbersAreExclusive) {
  ThreadPool pool(3);
  std::vector<int> pieces(3);  // not atomic: a race is a failure under TSan
  for (int job = 0; job < 500; ++job) {
    pool.ForEach(20, [&](int64_t, int thread) { ++pieces[thread]; });
  }
  EXPECT_EQ(pieces[0] + pieces[1] + pieces[2], 500 * 20);
}

// Writes of a body are seen by the caller, those before ForEach by the bodies.
TEST(ThreadPoolTest, PublishesInBothDirections) {
  ThreadPool pool(2);
  std::vector<int> in(64), out(64);
  for (int job = 0; job < 1000; ++job) {
    for (int& v : in) v = job;
    pool.ForEach(64, [&](int64_t i, int) { out[i] = in[i] + 1; });
    for (const int v : out) ASSERT_EQ(v, job + 1);
  }
}

TEST(ThreadPoolTest, BodiesFlushSubnormalsAndTheCallerDoesNotAfter) {
  ThreadPool pool(2);
  const unsigned before = _mm_getcsr();
  volatile float least = std::numeric_limits<float>::min();
  std::atomic<int> kept{0};
  pool.ForEach(100, [&](int64_t, int) {
    const volatile float half = least * 0.5f;
    if (half != 0.0f) kept.fetch_add(1);
  });
  EXPECT_EQ(kept.load(), 0);
  EXPECT_EQ(_mm_getcsr() & ~0x3fu, before & ~0x3fu);  // the low six bits are past exceptions
  const volatile float half = least * 0.5f;
  EXPECT_NE(half, 0.0f);
}

// Of each thread of the pool: nobody leaves its piece before all have one.
std::vector<std::vector<int>> Affinities(ThreadPool& pool) {
  std::vector<std::vector<int>> seen(pool.threads());
  std::atomic<int> there{0};
  pool.ForEach(pool.threads(), [&](int64_t, int thread) {
    seen[thread] = AvailableCpus();
    for (++there; there < pool.threads();) sched_yield();
  });
  return seen;
}

TEST(ThreadPoolTest, GivenCoresEachHelperStaysOnItsOwnAndTheCallerOnceAdopted) {
  const std::vector<int> cores = AvailableCpus();
  std::vector<int> own(3);
  for (size_t i = 0; i < own.size(); ++i) own[i] = cores[i % cores.size()];
  ThreadPool pool(3, own);
  const auto before = Affinities(pool);
  EXPECT_EQ(before[0], cores) << "what the caller starts would inherit it";
  EXPECT_EQ(before[1], std::vector<int>{own[1]});
  EXPECT_EQ(before[2], std::vector<int>{own[2]});
  std::thread owner([&] {
    pool.AdoptCaller();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Affinities(pool)[i], std::vector<int>{own[i]});
  });
  owner.join();
  EXPECT_EQ(AvailableCpus(), cores);
}

TEST(ThreadPoolTest, WithoutCoresNobodyIsPinned) {
  ThreadPool pool(3);
  pool.AdoptCaller();
  EXPECT_EQ(Affinities(pool), std::vector<std::vector<int>>(3, AvailableCpus()));
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
         1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(ThreadPoolTest, SleepsWhenIdle) {
  ThreadPool pool(4);
  pool.ForEach(100, [](int64_t, int) {});
  const double before = CpuSeconds();
  const timespec nap = {0, 200'000'000};
  nanosleep(&nap, nullptr);               // the idle time that is measured
  EXPECT_LT(CpuSeconds() - before, 0.1);  // three spinning helpers would take up to 0.6
}

}  // namespace
}  // namespace setu::kernels
