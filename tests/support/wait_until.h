// SPDX-License-Identifier: Apache-2.0
// Waits for what another process or thread does, looking again and again.
//
//   EXPECT_TRUE(WaitUntil(std::chrono::seconds(5), [&] { return cluster.Idle(); }));
#ifndef SETU_TESTS_SUPPORT_WAIT_UNTIL_H_
#define SETU_TESTS_SUPPORT_WAIT_UNTIL_H_

#include <chrono>
#include <thread>

#include "absl/functional/function_ref.h"

namespace setu::test {

// Whether `reached` was true within the limit; it is asked once at least.
inline bool WaitUntil(std::chrono::milliseconds limit, absl::FunctionRef<bool()> reached) {
  constexpr std::chrono::milliseconds kLookAgain(5);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!reached()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_WAIT_UNTIL_H_
