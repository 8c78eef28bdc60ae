// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/added_tokens.h"

#include "common/base/check.h"

namespace setu::tokenizer {
namespace {

uint64_t Edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

}  // namespace

void AddedTokens::Add(std::string_view text, TokenId id) {
  SETU_CHECK(!text.empty() && text.size() <= kMaxBytes, "an added token has 1 to kMaxBytes bytes");
  first_.set(static_cast<uint8_t>(text[0]));
  uint32_t node = 0;
  for (char byte : text) {
    const auto [edge, added] =
        edges_.try_emplace(Edge(node, byte), static_cast<uint32_t>(ids_.size()));
    if (added) ids_.push_back(kNone);
    node = edge->second;
  }
  ids_[node] = id;
}

std::optional<AddedTokens::Match> AddedTokens::Find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!first_.test(static_cast<uint8_t>(text[begin]))) continue;
    std::optional<Match> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto edge = edges_.find(Edge(node, text[at]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (ids_[node] != kNone) longest = {.begin = begin, .end = at + 1, .id = ids_[node]};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace setu::tokenizer
