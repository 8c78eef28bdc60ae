// SPDX-License-Identifier: Apache-2.0
// Whether what happened was right. Keeps the first thing that was not.
#ifndef SETU_TESTS_SIMULATOR_JUDGE_H_
#define SETU_TESTS_SIMULATOR_JUDGE_H_

#include <string>
#include <utility>

#include "tests/simulator/timeline.h"

namespace setu::simulator {

class Judge {
 public:
  explicit Judge(Timeline& timeline) : timeline_(timeline) {}

  void Blame(std::string what) {
    timeline_.Tell("WRONG", " " + what);
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  template <typename Text>
  void Expect(bool right, Text what) {
    if (!right) Blame(what());
  }
  // Empty where all was right.
  const std::string& wrong() const { return wrong_; }

 private:
  Timeline& timeline_;
  std::string wrong_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_JUDGE_H_
