// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/soak_faults.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

using std::chrono::milliseconds;

// Longer than the router's patience with a silent worker.
constexpr milliseconds kLongestFreeze(12'000);
constexpr milliseconds kLongestPause(1'500);
constexpr milliseconds kLongestHarm(5'000);
constexpr milliseconds kLongestSilence(25'000);  // keepalive takes 20 s

}  // namespace

void SoakFaults::RunUntil(std::chrono::steady_clock::time_point end) {
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(UpTo(kLongestPause));
    Hit();
  }
}

milliseconds SoakFaults::UpTo(milliseconds limit) {
  return milliseconds(random_() % limit.count());
}

void SoakFaults::Hit() {
  if (random_() % 3 == 0) return HarmLink();
  const std::string role = random_() % 2 == 0 ? "prefill" : "decode";
  const std::string name = absl::StrCat(role, "-", random_() % 2);
  const uint64_t kind = random_() % 12;
  if (kind == 0) {
    cluster_.Signal(name, SIGSTOP);
    std::this_thread::sleep_for(UpTo(kLongestFreeze));
    cluster_.Signal(name, SIGCONT);
    ++counts_.freezes;
    EXPECT_TRUE(cluster_.WaitSeen(role)) << name << " after a freeze";
    return;
  }
  if (kind <= 4) {
    cluster_.Signal(name, SIGTERM);
    EXPECT_EQ(cluster_.WaitEnd(name, std::chrono::seconds(70)), "exit 0") << name;
    ++counts_.drains;
  } else {
    cluster_.Kill(name);
    ++counts_.kills;
  }
  EXPECT_TRUE(cluster_.StartAgain(name)) << name;
}

// Bytes turn only where checksums are: between prefill and decode. TCP has one for the other links,
// and a proxy is no network that goes past it.
void SoakFaults::HarmLink() {
  const std::string prefill = absl::StrCat("prefill-", random_() % 2);
  const std::string decode = absl::StrCat("decode-", random_() % 2);
  const bool to_prefill = random_() % 2 == 0;
  const std::string either = to_prefill ? prefill : decode;
  const char* const gauge = to_prefill ? "setu_prefill_workers" : "setu_decode_workers";
  const FaultProxy::Way delayed = {.delay = milliseconds(200)}, held = {.held = true},
                        swallowed = {.swallowed = true};
  switch (random_() % 7) {
    case 0:
      links_.To(either).Cut();
      break;
    case 1:
      links_.To(either).Harm({.there = {.end_after = 20'000}});
      break;
    case 2:
      links_.To(either).Harm({.there = delayed, .back = delayed});
      break;
    case 3:
      links_.To(either).Harm({.there = held, .back = held});
      break;
    case 4:
      // Its connections stay dead when it is healed: until the router has seen that, the worker
      // is not back.
      links_.To(either).Harm({.there = swallowed, .back = swallowed});
      EXPECT_TRUE(WaitUntil(kLongestSilence, [&] { return cluster_.Metric("router", gauge) == 1; }))
          << either << " fell silent";
      break;
    case 5:
      links_.To(decode).Harm({.there = {.flips = 1e-3}}, cluster_.pid(prefill));
      break;
    case 6:
      links_.To(decode).Harm({.refuse = true}, cluster_.pid(prefill));
      break;
  }
  std::this_thread::sleep_for(UpTo(kLongestHarm));
  links_.HealAll();
  ++counts_.links;
  for (const char* role : {"prefill", "decode"}) {
    EXPECT_TRUE(WaitUntil(kLongestSilence, [&] { return cluster_.WaitSeen(role); }))
        << role << " after a bad link";
  }
}

}  // namespace setu::test
