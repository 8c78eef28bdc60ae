// SPDX-License-Identifier: Apache-2.0
// A tokenizer for tests: ids 0 to 255 are bytes, then four control tokens, then what a test adds.
#ifndef SETU_TESTS_SERVICES_ROUTER_BYTE_TOKENIZER_H_
#define SETU_TESTS_SERVICES_ROUTER_BYTE_TOKENIZER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tokenizer/tokenizer.h"

namespace setu::router {

class ByteTokenizer : public tokenizer::Tokenizer {
 public:
  using TokenId = tokenizer::TokenId;
  static constexpr TokenId kBegin = 256;
  static constexpr TokenId kEnd = 257;
  static constexpr TokenId kMessageStart = 258;
  static constexpr TokenId kMessageEnd = 259;
  static constexpr char kMissingByte = 0x0B;  // a text with it cannot be encoded

  explicit ByteTokenizer(bool adds_begin = true, const std::vector<std::string>& more = {})
      : adds_begin_(adds_begin) {
    for (int byte = 0; byte < 256; ++byte)
      tokens_.push_back(std::string(1, static_cast<char>(byte)));
    tokens_.insert(tokens_.end(), {"<s>", "</s>", "<|im_start|>", "<|im_end|>"});
    tokens_.insert(tokens_.end(), more.begin(), more.end());
  }

  absl::StatusOr<std::vector<TokenId>> EncodeRuns(std::span<const tokenizer::TextRun> runs,
                                                  bool add_special) const override {
    std::vector<TokenId> ids;
    if (add_special && adds_begin_) ids.push_back(kBegin);
    for (const tokenizer::TextRun& run : runs) {
      for (std::string_view rest = run.text; !rest.empty();) {
        if (rest[0] == kMissingByte) return absl::InvalidArgumentError("byte 0x0B is missing");
        TokenId id = run.parse_special ? ControlTokenAt(rest) : -1;
        if (id < 0) id = static_cast<uint8_t>(rest[0]);
        ids.push_back(id);
        rest.remove_prefix(tokens_[id].size());
      }
    }
    return ids;
  }
  std::string_view Bytes(TokenId id, bool special) const override {
    return !special && id >= kBegin && id <= kMessageEnd ? std::string_view() : tokens_[id];
  }
  std::string Decode(std::span<const TokenId> ids, bool special) const override {
    tokenizer::StreamDecoder decoder(*this);
    std::string text;
    for (TokenId id : ids) text += special ? std::string(Bytes(id, true)) : decoder.Push(id);
    return text + decoder.Flush();
  }
  int32_t vocabulary() const override { return static_cast<int32_t>(tokens_.size()); }
  const std::vector<TokenId>& end_ids() const override { return end_ids_; }
  std::string_view bos_text() const override { return tokens_[kBegin]; }
  std::string_view eos_text() const override { return tokens_[kEnd]; }
  uint64_t digest() const override { return 1; }

 private:
  TokenId ControlTokenAt(std::string_view text) const {
    for (TokenId id = kBegin; id <= kMessageEnd; ++id) {
      if (text.starts_with(tokens_[id])) return id;
    }
    return -1;
  }

  const bool adds_begin_;
  std::vector<std::string> tokens_;
  const std::vector<TokenId> end_ids_ = {kEnd, kMessageEnd};
};

}  // namespace setu::router

#endif  // SETU_TESTS_SERVICES_ROUTER_BYTE_TOKENIZER_H_
