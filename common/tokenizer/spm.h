// SPDX-License-Identifier: Apache-2.0
// SentencePiece's BPE as Llama uses it: spaces are written "▁", characters merge to the token with
// the highest score first (the leftmost of equals), and a character that no token covers becomes
// its bytes. n log n in the text.
// Source: https://github.com/google/sentencepiece/blob/master/src/bpe_model.cc
#ifndef SETU_COMMON_TOKENIZER_SPM_H_
#define SETU_COMMON_TOKENIZER_SPM_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/tokenizer/text_encoder.h"
#include "common/tokenizer/text_map.h"
#include "common/tokenizer/tokenizer.h"
#include "common/tokenizer/vocabulary.h"

namespace setu::tokenizer {

inline constexpr std::string_view kSpmSpace = "\xE2\x96\x81";  // "▁"

class SpmEncoder final : public TextEncoder {
 public:
  // `byte_ids[b]` is the token that stands for byte b, -1 where there is none.
  SpmEncoder(const Vocabulary& vocabulary, const std::array<TokenId, 256>& byte_ids,
             bool add_space_prefix);

  absl::Status Encode(std::string_view text, size_t offset,
                      std::vector<TokenId>& ids) const override;

 private:
  struct Token {
    TokenId id = 0;
    float score = 0;
  };
  struct Workspace;

  const Token* Find(std::string_view piece) const;
  void MergeAll(Workspace& work) const;
  void Propose(int32_t left, Workspace& work) const;

  TextMap<Token> tokens_;
  size_t longest_ = 0;  // bytes of the longest text in tokens_
  std::array<TokenId, 256> byte_ids_;
  bool add_space_prefix_;
};

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_SPM_H_
