// SPDX-License-Identifier: Apache-2.0
// Changes inputs as a fuzzer does, without looking at what they reach: flipped bits, numbers on the
// edge of their type, parts that are lost, doubled or out of another input. Seeded: the same calls
// give the same inputs on every machine.
//
//   Mutator mutator(/*seed=*/7);
//   std::string input = mutator.Mutate(corpus[0], corpus[1]);
#ifndef SETU_TESTS_FUZZ_MUTATOR_H_
#define SETU_TESTS_FUZZ_MUTATOR_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace setu::fuzz {

inline constexpr size_t kMaxInputBytes = 64 << 10;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // `input` after one to four changes, some with parts of `other`; at most kMaxInputBytes.
  std::string Mutate(std::string_view input, std::string_view other);
  // Below `limit`, which is not 0.
  size_t Below(size_t limit) { return random_() % limit; }

 private:
  void ChangeOnce(std::string& input, std::string_view other);
  std::string Number();
  std::string_view Part(std::string_view text);

  std::mt19937_64 random_;  // its numbers, unlike a distribution's, are the standard's
};

}  // namespace setu::fuzz

#endif  // SETU_TESTS_FUZZ_MUTATOR_H_
