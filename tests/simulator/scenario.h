// SPDX-License-Identifier: Apache-2.0
// What a seed stands for: a cluster, its requests, and what befalls it. All drawn from the seed.
#ifndef SETU_TESTS_SIMULATOR_SCENARIO_H_
#define SETU_TESTS_SIMULATOR_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulator/client.h"
#include "tests/simulator/decode_node.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/prefill_node.h"
#include "tests/simulator/router_node.h"

namespace setu::simulator {

// kSafety: faults of all kinds, to the end; what is answered must be right. kLiveness: faults that
// a real network and its machines have, which all end; then everything must be answered.
enum class Mode : uint8_t { kSafety, kLiveness };

struct Asking {
  Duration at{0};
  size_t router = 0;
  Wish wish;
};

struct Scenario {
  int32_t routers = 1;
  std::vector<PrefillSetup> prefill;
  std::vector<DecodeSetup> decode;
  RouterSetup router;
  std::vector<Asking> askings;  // in the order of their times
  int32_t faults = 0;
  MessageFaults messages;
};

Scenario DrawScenario(Mode mode, Dice& dice);

// Two of them have the same prompt.
inline constexpr int32_t kTwinPrompt = 24;
Wish TwinWish(int32_t number);

// One more request of the kind that a scenario has: greedy, whole, and soon over.
Wish ProbeWish(int32_t number, Dice& dice);

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_SCENARIO_H_
