// SPDX-License-Identifier: Apache-2.0
// Hours of load on a cluster of processes whose workers die, leave and freeze, and whose links go
// bad. Each storm is followed by a calm in which nothing may be held, and processes may not have
// grown. tests/fault/soak.sh builds and runs it.
//
//   SETU_TEST_SOAK_SECONDS   how long, 3600 unless said, a day at most
//   SETU_TEST_SOAK_SEED      of requests, clients and faults, 1 unless said
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/links.h"
#include "tests/fault/soak_faults.h"
#include "tests/fault/soak_load.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"
#include "tests/support/vitals.h"

namespace setu::test {
namespace {

using std::chrono::seconds;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr seconds kStorm(30);
constexpr seconds kProgress(10);
constexpr int kClients = 12;

uint64_t FromEnvironment(const char* name, uint64_t otherwise, uint64_t limit) {
  const char* text = std::getenv(name);
  uint64_t value = otherwise;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &value)) << name << "=" << text;
  }
  EXPECT_LE(value, limit) << name;
  return std::min(value, limit);
}

class Soak : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(cluster_.WaitReady()); }

  void UnderLoad(absl::FunctionRef<void(SteadyTime end)> act) {
    load_.Start(cluster_.stub(), kClients);
    act(std::chrono::steady_clock::now() + kStorm);
    load_.Stop();
  }

  // A process may have grown since its first calm by this.
  static constexpr Vitals kGrowth = {.descriptors = 16, .threads = 8, .resident_kb = 16 << 10};

  void ExpectCalm() {
    ++calms_;
    EXPECT_TRUE(cluster_.WaitReady(seconds(5)));
    const std::string held = cluster_.Quiesce();
    EXPECT_EQ(held, "");
    if (!held.empty()) ++calms_with_held_;
    std::map<pid_t, Vitals> first;
    const auto total = [&](const char* name, const char* what) {
      const auto count = cluster_.Metric(name, absl::StrCat("setu_requests_", what, "_total"));
      return count.value_or(-1);
    };
    for (const char* name : {"router", "prefill-0", "prefill-1", "decode-0", "decode-1"}) {
      const pid_t pid = cluster_.pid(name);
      const Vitals now = VitalsOf(pid);
      const Vitals then = first_.contains(pid) ? first_.at(pid) : now;
      first[pid] = then;
      EXPECT_EQ(total(name, "admitted"),
                total(name, "finished") + total(name, "failed") + total(name, "cancelled"))
          << name;
      EXPECT_LE(now.descriptors, then.descriptors + kGrowth.descriptors) << name;
      EXPECT_LE(now.threads, then.threads + kGrowth.threads) << name;
      EXPECT_LE(now.resident_kb, then.resident_kb + kGrowth.resident_kb) << name;
      last_[name] = {then, now};
    }
    first_ = std::move(first);
  }

  void Summarise() const {
    const SoakLoad::Counts& load = load_.counts();
    SayHowFar();
    std::printf(
        "\none right end each      %lu answers with a wrong one\n"
        "the tokens of one alone %lu answers with others\n"
        "nothing held            %lu of %lu calms with something held after 5 s\n"
        "\n%-10s %14s %14s %20s   from the first calm of the process to the last\n",
        load.wrong_ends.load(), load.wrong_tokens.load(), calms_with_held_, calms_, "process",
        "descriptors", "threads", "resident kB");
    for (const auto& [name, vitals] : last_) {
      const auto& [then, now] = vitals;
      std::printf("%-10s %6ld to %4ld %6ld to %4ld %9ld to %7ld\n", name.c_str(), then.descriptors,
                  now.descriptors, then.threads, now.threads, then.resident_kb, now.resident_kb);
    }
  }

  void SayHowFar() const {
    const SoakLoad::Counts& load = load_.counts();
    const SoakFaults::Counts& faults = faults_.counts();
    const auto run = std::chrono::steady_clock::now() - start_;
    std::printf(
        "%6ld s: %lu ok, %lu refused, %lu cancelled, %lu expired, %lu tokens; "
        "%lu kills, %lu drains, %lu freezes, %lu links\n",
        std::chrono::duration_cast<seconds>(run).count(), load.ok.load(), load.refused.load(),
        load.cancelled.load(), load.expired.load(), load.tokens.load(), faults.kills.load(),
        faults.drains.load(), faults.freezes.load(), faults.links.load());
    std::fflush(stdout);
  }

  const uint64_t seed_ = FromEnvironment("SETU_TEST_SOAK_SEED", 1, UINT64_MAX);
  const SteadyTime start_ = std::chrono::steady_clock::now();
  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_);
  SoakLoad load_{model_, seed_};
  Links links_;
  ProcessCluster cluster_{{.model = model_,
                           .prefill_workers = 2,
                           .decode_workers = 2,
                           .prefill_flags = {"--chunk-tokens", "32"},
                           // Little room and small grants, so that sequences are preempted.
                           .decode_flags = {"--kv-memory", "512KiB", "--grant-output-tokens", "16"},
                           .reach = links_.reach()}};
  SoakFaults faults_{cluster_, links_, seed_};
  uint64_t calms_ = 0, calms_with_held_ = 0;
  std::map<std::string, std::pair<Vitals, Vitals>> last_;  // by process: its first and last calm
  std::map<pid_t, Vitals> first_;                          // of each process that runs
};

TEST_F(Soak, EveryAnswerIsRightAndNothingGrows) {
  std::printf("seed %lu\n", seed_);
  const seconds length(FromEnvironment("SETU_TEST_SOAK_SECONDS", 3600, 86'400));
  const std::jthread progress([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stopped.wait_for(lock, stop, kProgress, [&] { return stop.stop_requested(); })) {
      SayHowFar();
    }
  });
  while (!HasFailure() && std::chrono::steady_clock::now() - start_ < length) {
    UnderLoad([&](SteadyTime end) { faults_.RunUntil(end); });
    ExpectCalm();
    // The same processes for a while, so that one that grows shows.
    UnderLoad([](SteadyTime end) { std::this_thread::sleep_until(end); });
    ExpectCalm();
  }
  Summarise();
}

}  // namespace
}  // namespace setu::test
