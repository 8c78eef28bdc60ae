// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10: a block cipher in counter mode as a random number generator. Any draw is computed
// from its counter alone, so a sequence that resumes elsewhere draws the same numbers.
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11.
#ifndef SETU_COMMON_ENGINE_PHILOX_H_
#define SETU_COMMON_ENGINE_PHILOX_H_

#include <array>
#include <cstdint>

namespace setu::engine {

constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;  // the golden ratio
    key[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  return counter;
}

}  // namespace setu::engine

#endif  // SETU_COMMON_ENGINE_PHILOX_H_
