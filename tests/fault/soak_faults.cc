// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/soak_faults.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace setu::test {
namespace {

using std::chrono::milliseconds;

// Longer than the router's patience with a silent worker.
constexpr milliseconds kLongestFreeze(12'000);
constexpr milliseconds kLongestPause(1'500);

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

}  // namespace setu::test
