// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/gguf_cursor.h"
#include "common/tokenizer/byte_level.h"

namespace setu::tokenizer {
namespace {

constexpr TokenId kNone = -1;

uint64_t Pair(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

// A word being merged: a linked list of symbols and a heap of pairs that may merge.
struct BpeEncoder::Workspace {
  struct Symbol {
    TokenId id = kNone;  // kNone: merged into the symbol on its left
    int32_t previous = -1;
    int32_t next = -1;
  };
  std::vector<Symbol> symbols;
  // (rank << 32 | left symbol), smallest first. An entry whose symbols have changed is stale.
  std::vector<uint64_t> heap;
};

absl::StatusOr<std::unique_ptr<TextEncoder>> BpeEncoder::Create(const Vocabulary& vocabulary,
                                                                const PreTokenizerRules& rules) {
  SETU_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::Compile(rules.patterns));
  std::unique_ptr<BpeEncoder> encoder(new BpeEncoder(std::move(pre_tokenizer)));
  Words words;
  words.reserve(vocabulary.texts.size());
  for (TokenType type : {TokenType::kNormal, TokenType::kUserDefined}) {
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      if (vocabulary.types[id] != type || vocabulary.texts[id].empty()) continue;
      // What a user-defined token stands for is its text, written plainly.
      std::optional<std::string> bytes = type == TokenType::kUserDefined
                                             ? vocabulary.texts[id]
                                             : BytesOfByteLevel(vocabulary.texts[id]);
      if (bytes) words.try_emplace(*std::move(bytes), id);
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = words.find(std::string(1, static_cast<char>(byte)));
    encoder->byte_ids_[byte] = found == words.end() ? kNone : found->second;
  }
  encoder->merges_.reserve(vocabulary.merges.size());
  encoder->ranks_.reserve(vocabulary.merges.size());
  for (const std::string& merge : vocabulary.merges) {
    SETU_RETURN_IF_ERROR(encoder->AddMerge(merge, words));
  }
  if (rules.whole_words) encoder->whole_words_ = std::move(words);
  return encoder;
}

absl::Status BpeEncoder::AddMerge(std::string_view text, const Words& words) {
  const auto find = [&](std::string_view part) {
    const std::optional<std::string> bytes = BytesOfByteLevel(part);
    const auto found = bytes ? words.find(*bytes) : words.end();
    return found == words.end() ? kNone : found->second;
  };
  const size_t space = std::min(text.find(' '), text.size());
  const std::string_view left = text.substr(0, space);
  const std::string_view right = text.substr(std::min(space + 1, text.size()));
  const Merge merge = {find(left), find(right), find(std::string(left).append(right))};
  if (merge.left == kNone || merge.right == kNone || merge.product == kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        "load failed: tokenizer.ggml.merges[", merges_.size(), "] ", model::Quoted(text),
        " does not make an ordinary token of two ordinary tokens"));
  }
  ranks_.try_emplace(Pair(merge.left, merge.right), static_cast<uint32_t>(merges_.size()));
  merges_.push_back(merge);
  return absl::OkStatus();
}

absl::Status BpeEncoder::Encode(std::string_view text, size_t offset,
                                std::vector<TokenId>& ids) const {
  Workspace work;
  return pre_tokenizer_.Split(text, [&](std::string_view word) {
    return EncodeWord(word, offset + static_cast<size_t>(word.data() - text.data()), work, ids);
  });
}

absl::Status BpeEncoder::EncodeWord(std::string_view word, size_t offset, Workspace& work,
                                    std::vector<TokenId>& ids) const {
  if (const auto whole = whole_words_.find(word); whole != whole_words_.end()) {
    ids.push_back(whole->second);
    return absl::OkStatus();
  }
  work.symbols.clear();
  const auto last = static_cast<int32_t>(word.size()) - 1;
  for (int32_t at = 0; at <= last; ++at) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(word[at])];
    if (id == kNone) return NoTokenForByte(word[at], offset + at);
    work.symbols.push_back({.id = id, .previous = at - 1, .next = at < last ? at + 1 : -1});
  }
  MergeAll(work);
  for (int32_t at = 0; at != -1; at = work.symbols[at].next) ids.push_back(work.symbols[at].id);
  return absl::OkStatus();
}

void BpeEncoder::MergeAll(Workspace& work) const {
  work.heap.clear();
  for (int32_t at = 0; at < static_cast<int32_t>(work.symbols.size()); ++at) Propose(at, work);
  while (!work.heap.empty()) {
    std::pop_heap(work.heap.begin(), work.heap.end(), std::greater<>());
    const uint64_t best = work.heap.back();
    work.heap.pop_back();
    const Merge& merge = merges_[best >> 32];
    const auto at = static_cast<int32_t>(best & 0xFFFFFFFF);
    Workspace::Symbol& left = work.symbols[at];
    if (left.id != merge.left || left.next == -1) continue;
    Workspace::Symbol& right = work.symbols[left.next];
    if (right.id != merge.right) continue;
    left.id = merge.product;
    right.id = kNone;
    left.next = right.next;
    if (left.next != -1) work.symbols[left.next].previous = at;
    if (left.previous != -1) Propose(left.previous, work);
    Propose(at, work);
  }
}

void BpeEncoder::Propose(int32_t left, Workspace& work) const {
  const Workspace::Symbol& symbol = work.symbols[left];
  if (symbol.next == -1) return;
  const auto rank = ranks_.find(Pair(symbol.id, work.symbols[symbol.next].id));
  if (rank == ranks_.end()) return;
  work.heap.push_back(uint64_t{rank->second} << 32 | static_cast<uint32_t>(left));
  std::push_heap(work.heap.begin(), work.heap.end(), std::greater<>());
}

}  // namespace setu::tokenizer
