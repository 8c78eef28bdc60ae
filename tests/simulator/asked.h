// SPDX-License-Identifier: Apache-2.0
// What was ever asked for, by tenant: of a prompt no more can be known beforehand than others of
// the same tenant had in common with it.
//
//   asked.Add(salt, ids);                                   // prompt and answer
//   const int32_t most = asked.CommonTokens(salt, ids, 2);  // whole blocks
#ifndef SETU_TESTS_SIMULATOR_ASKED_H_
#define SETU_TESTS_SIMULATOR_ASKED_H_

#include <cstdint>
#include <span>
#include <unordered_map>

#include "common/engine/sampling_params.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/hash_model.h"

namespace setu::simulator {

class Asked {
 public:
  void Add(uint64_t salt, std::span<const engine::TokenId> ids) {
    Walk(salt, ids, [this](uint64_t name) {
      ++askers_[name];
      return true;
    });
  }
  // With `askers` at least, the one who asks here among them.
  int32_t CommonTokens(uint64_t salt, std::span<const engine::TokenId> ids, int32_t askers) const {
    int32_t blocks = 0;
    Walk(salt, ids, [&](uint64_t name) {
      const auto known = askers_.find(name);
      if (known == askers_.end() || known->second < askers) return false;
      ++blocks;
      return true;
    });
    return blocks * kBlockTokens;
  }

 private:
  template <typename Visit>
  static void Walk(uint64_t salt, std::span<const engine::TokenId> ids, Visit visit) {
    uint64_t name = Mixed(salt);
    for (size_t i = 0; i < ids.size(); ++i) {
      name = Mixed(name ^ static_cast<uint32_t>(ids[i]));
      if ((i + 1) % kBlockTokens == 0 && !visit(name)) return;
    }
  }
  std::unordered_map<uint64_t, int32_t> askers_;  // by the name of a block and all before it
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_ASKED_H_
