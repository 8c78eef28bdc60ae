// SPDX-License-Identifier: Apache-2.0
// Byte-level byte pair encoding: words become bytes, then the pair that was learnt first merges
// first (the leftmost of equals) until no pair is known. n log n in the longest word.
// Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units"; the byte
// level is GPT-2's.
#ifndef SETU_COMMON_TOKENIZER_BPE_H_
#define SETU_COMMON_TOKENIZER_BPE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tokenizer/pre_tokenizer.h"
#include "common/tokenizer/text_encoder.h"
#include "common/tokenizer/text_map.h"
#include "common/tokenizer/tokenizer.h"
#include "common/tokenizer/vocabulary.h"

namespace setu::tokenizer {

class BpeEncoder final : public TextEncoder {
 public:
  // INVALID_ARGUMENT where a merge's parts or product are no ordinary tokens.
  static absl::StatusOr<std::unique_ptr<TextEncoder>> Create(const Vocabulary& vocabulary,
                                                             const PreTokenizerRules& rules);

  absl::Status Encode(std::string_view text, size_t offset,
                      std::vector<TokenId>& ids) const override;

 private:
  using Words = TextMap<TokenId>;
  struct Merge {
    TokenId left = 0;
    TokenId right = 0;
    TokenId product = 0;
  };
  struct Workspace;

  explicit BpeEncoder(PreTokenizer pre_tokenizer) : pre_tokenizer_(std::move(pre_tokenizer)) {}
  absl::Status AddMerge(std::string_view text, const Words& words);
  absl::Status EncodeWord(std::string_view word, size_t offset, Workspace& work,
                          std::vector<TokenId>& ids) const;
  void MergeAll(Workspace& work) const;
  void Propose(int32_t left, Workspace& work) const;

  PreTokenizer pre_tokenizer_;
  std::array<TokenId, 256> byte_ids_;              // -1: the vocabulary lacks it
  std::vector<Merge> merges_;                      // by rank
  absl::flat_hash_map<uint64_t, uint32_t> ranks_;  // (left id << 32 | right id) -> rank
  Words whole_words_;                              // empty where words are always merged up to
};

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_BPE_H_
