// SPDX-License-Identifier: Apache-2.0
// Seeded choices: equal seeds give equal throws, on every machine.
//
//   Dice dice(seed);
//   if (dice.Chance(0.3)) network.Stop(link, dice.Between(seconds(1), seconds(30)));
#ifndef SETU_TESTS_SIMULATOR_DICE_H_
#define SETU_TESTS_SIMULATOR_DICE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace setu::simulator {

// SplitMix64's finaliser: each bit of the result depends on each bit of `x`.
constexpr uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(Mixed(seed)) {}

  uint64_t Next() { return state_ = Mixed(state_); }
  int64_t Below(int64_t end) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(end)); }
  int64_t Between(int64_t least, int64_t most) { return least + Below(most - least + 1); }
  Duration Between(Duration least, Duration most) {
    return Duration(Between(least.count(), most.count()));
  }
  bool Chance(double probability) {
    return static_cast<double>(Next() >> 11) * 0x1p-53 < probability;
  }
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(int64_t(i))]);
  }

 private:
  uint64_t state_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_DICE_H_
