// SPDX-License-Identifier: Apache-2.0
// A model that only pretends: the "KV" of a position is a hash of all that the blocks before it
// hold, and the next token is drawn from a hash of all blocks of the sequence. Whoever reads a
// wrong, stale or foreign block goes on with other tokens than the reference, and never comes back.
//
//   HashRunner runner(/*blocks=*/64, [&](int32_t rows) { node.Spend(...); });
//   std::vector<TokenId> whole = Reference(request, /*choice=*/0);
#ifndef SETU_TESTS_SIMULATOR_HASH_MODEL_H_
#define SETU_TESTS_SIMULATOR_HASH_MODEL_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/engine/runner.h"
#include "services/router/valid_request.h"

namespace setu::simulator {

inline constexpr int32_t kVocabulary = 260;  // ByteTokenizer's
inline constexpr int32_t kContext = 256;
inline constexpr int32_t kBlockTokens = 4;

class HashRunner final : public engine::Runner {
 public:
  // `spend` hears of each step's rows before the step's results are used.
  HashRunner(int32_t blocks, int32_t max_rows, std::function<void(int32_t)> spend);

  kernels::ConstMatrix Step(std::span<const engine::StepEntry> entries,
                            const model::LayerDone& layer_done) override;

 private:
  uint64_t Slot(std::span<const kv::BlockId> blocks, int32_t position, int32_t layer) const;
  void SetSlot(std::span<const kv::BlockId> blocks, int32_t position, int32_t layer,
               uint64_t value);

  const std::function<void(int32_t)> spend_;
  std::vector<float> logits_;
};

// What the request's choice comes to where nothing ever goes wrong, up to its end.
std::vector<engine::TokenId> Reference(const router::ValidRequest& request, uint32_t choice);

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_HASH_MODEL_H_
