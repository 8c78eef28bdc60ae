// SPDX-License-Identifier: Apache-2.0
// Greedy text from a ModelRunner with its steps cut as a test wants them: what must not change
// the tokens (chunk, batch, block tables) is an argument here.
//
//   std::vector<Generated> alone = Generate(*runner, prompts, 8, {});
//   std::vector<Generated> cut = Generate(*runner, prompts, 8, {.chunk = 16, .batch = 3});
#ifndef SETU_TESTS_SUPPORT_GENERATE_H_
#define SETU_TESTS_SUPPORT_GENERATE_H_

#include <cstdint>
#include <vector>

#include "common/engine/model_runner.h"

namespace setu::test {

struct Cut {
  int32_t chunk = 512;   // most tokens of one sequence in a step
  int32_t batch = 1;     // sequences at once; prompts and generation share steps
  uint32_t shuffle = 0;  // seed of the order in which blocks are handed out; 0: ascending
};

struct Generated {
  std::vector<int32_t> ids;   // prompt, then generated
  std::vector<float> logits;  // of every generated id, one row after another
  bool operator==(const Generated&) const = default;
};

// `count` more ids for each prompt; end ids do not end it. The pool must be free and have room for
// a batch of the longest prompts.
std::vector<Generated> Generate(engine::ModelRunner& runner,
                                const std::vector<std::vector<int32_t>>& prompts, int32_t count,
                                const Cut& cut);

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_GENERATE_H_
