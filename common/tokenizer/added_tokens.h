// SPDX-License-Identifier: Apache-2.0
// Finds tokens that are matched in raw text before any merging: control tokens, or those that the
// model's makers added as whole texts. The leftmost match wins, the longest of those.
//
//   AddedTokens control;
//   control.Add("<|im_end|>", 2);
//   for (auto match = control.Find(text, 0); match; match = control.Find(text, match->end)) ...
#ifndef SETU_COMMON_TOKENIZER_ADDED_TOKENS_H_
#define SETU_COMMON_TOKENIZER_ADDED_TOKENS_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/tokenizer/tokenizer.h"

namespace setu::tokenizer {

class AddedTokens {
 public:
  // Bounds the work per byte of text.
  static constexpr size_t kMaxBytes = 512;

  struct Match {
    size_t begin = 0;
    size_t end = 0;
    TokenId id = 0;
  };

  // `text` has 1 to kMaxBytes bytes.
  void Add(std::string_view text, TokenId id);
  // The first match that begins at `from` or later.
  std::optional<Match> Find(std::string_view text, size_t from) const;

 private:
  static constexpr TokenId kNone = -1;

  // A trie: an edge is (node << 8 | byte), node 0 is the root.
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::vector<TokenId> ids_ = {kNone};  // by node
  std::bitset<256> first_;              // bytes that a token begins with
};

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_ADDED_TOKENS_H_
