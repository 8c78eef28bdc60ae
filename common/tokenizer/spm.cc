// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/spm.h"

#include <algorithm>
#include <cstdint>

#include "common/tokenizer/utf8.h"

namespace setu::tokenizer {
namespace {

constexpr TokenId kNone = -1;

// Undoes the writing of spaces: where in `text` the byte stands that is at `at` once spaces (and a
// prefix of `prefix` bytes) are written out.
size_t OffsetBefore(std::string_view text, size_t prefix, size_t at) {
  size_t written = prefix;
  size_t offset = 0;
  while (offset < text.size() && written < at) {
    written += text[offset++] == ' ' ? kSpmSpace.size() : 1;
  }
  return offset;
}

}  // namespace

// The text being merged: a linked list of symbols and a heap of pairs that may merge.
struct SpmEncoder::Workspace {
  struct Symbol {
    uint32_t begin = 0;
    uint32_t bytes = 0;  // 0: merged into the symbol on its left
    int32_t previous = -1;
    int32_t next = -1;
  };
  struct Candidate {
    float score = 0;
    int32_t left = 0;
    uint32_t bytes = 0;  // of both; another sum means that a symbol has changed: stale
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  std::string text;
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;  // best first
};

SpmEncoder::SpmEncoder(const Vocabulary& vocabulary, const std::array<TokenId, 256>& byte_ids,
                       bool add_space_prefix)
    : byte_ids_(byte_ids), add_space_prefix_(add_space_prefix) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string& text = vocabulary.texts[id];
    if (vocabulary.types[id] != TokenType::kNormal || text.empty()) continue;
    tokens_.try_emplace(text, Token{.id = id, .score = vocabulary.scores[id]});
    longest_ = std::max(longest_, text.size());
  }
}

absl::Status SpmEncoder::Encode(std::string_view text, size_t offset,
                                std::vector<TokenId>& ids) const {
  Workspace work;
  const size_t prefix = add_space_prefix_ ? kSpmSpace.size() : 0;
  work.text = kSpmSpace.substr(0, prefix);
  for (char byte : text) byte == ' ' ? work.text.append(kSpmSpace) : work.text.append(1, byte);
  for (size_t at = 0; at < work.text.size();) {
    const size_t bytes = ReadUtf8(std::string_view(work.text).substr(at)).bytes;
    const auto index = static_cast<int32_t>(work.symbols.size());
    const bool last = at + bytes == work.text.size();
    work.symbols.push_back({.begin = static_cast<uint32_t>(at),
                            .bytes = static_cast<uint32_t>(bytes),
                            .previous = index - 1,
                            .next = last ? -1 : index + 1});
    at += bytes;
  }
  MergeAll(work);
  for (int32_t at = 0; at != -1; at = work.symbols[at].next) {
    const Workspace::Symbol& symbol = work.symbols[at];
    const auto piece = std::string_view(work.text).substr(symbol.begin, symbol.bytes);
    if (const Token* token = Find(piece); token != nullptr) {
      ids.push_back(token->id);
      continue;
    }
    for (char byte : piece) {
      const TokenId id = byte_ids_[static_cast<uint8_t>(byte)];
      if (id == kNone) {
        return NoTokenForByte(byte, offset + OffsetBefore(text, prefix, symbol.begin));
      }
      ids.push_back(id);
    }
  }
  return absl::OkStatus();
}

const SpmEncoder::Token* SpmEncoder::Find(std::string_view piece) const {
  if (piece.size() > longest_) return nullptr;
  const auto found = tokens_.find(piece);
  return found == tokens_.end() ? nullptr : &found->second;
}

void SpmEncoder::MergeAll(Workspace& work) const {
  for (int32_t at = 0; at < static_cast<int32_t>(work.symbols.size()); ++at) Propose(at, work);
  while (!work.heap.empty()) {
    std::pop_heap(work.heap.begin(), work.heap.end());
    const Workspace::Candidate best = work.heap.back();
    work.heap.pop_back();
    Workspace::Symbol& left = work.symbols[best.left];
    if (left.bytes == 0 || left.next == -1) continue;
    Workspace::Symbol& right = work.symbols[left.next];
    if (left.bytes + right.bytes != best.bytes) continue;
    left.bytes = best.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (left.next != -1) work.symbols[left.next].previous = best.left;
    if (left.previous != -1) Propose(left.previous, work);
    Propose(best.left, work);
  }
}

void SpmEncoder::Propose(int32_t left, Workspace& work) const {
  const Workspace::Symbol& symbol = work.symbols[left];
  if (symbol.next == -1) return;
  const uint32_t bytes = symbol.bytes + work.symbols[symbol.next].bytes;
  const Token* token = Find(std::string_view(work.text).substr(symbol.begin, bytes));
  if (token == nullptr) return;
  work.heap.push_back({.score = token->score, .left = left, .bytes = bytes});
  std::push_heap(work.heap.begin(), work.heap.end());
}

}  // namespace setu::tokenizer
