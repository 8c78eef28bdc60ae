// SPDX-License-Identifier: Apache-2.0
// What a model file says about its tokens: plain data, apart from the algorithms that use it.
// Source of names and types: the "tokenizer.ggml.*" keys of
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#ifndef SETU_COMMON_TOKENIZER_VOCABULARY_H_
#define SETU_COMMON_TOKENIZER_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/gguf.h"
#include "common/tokenizer/tokenizer.h"

namespace setu::tokenizer {

enum class TokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,  // ordinary text that is always one token
  kUnused = 5,
  kByte = 6,  // "<0x0A>"
};

struct Vocabulary {
  std::string model;                // "gpt2": byte-level BPE; "llama": SentencePiece
  std::string pre;                  // the pre-tokenizer's name; "gpt2" only
  std::vector<std::string> texts;   // by id
  std::vector<TokenType> types;     // by id
  std::vector<float> scores;        // by id, higher merges first; "llama" only
  std::vector<std::string> merges;  // "left right", first merges first; "gpt2" only
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> eot;
  std::optional<TokenId> eom;
  std::optional<bool> add_bos;  // absent: the model family's custom
  std::optional<bool> add_eos;
  std::optional<bool> add_space_prefix;

  int32_t size() const { return static_cast<int32_t>(texts.size()); }
};

// INVALID_ARGUMENT where a key is missing or has another type; names it.
absl::StatusOr<Vocabulary> ReadVocabulary(const model::GgufFile& file);

// INVALID_ARGUMENT where a list's length, a type, a score or an id is wrong, or a text is twice.
absl::Status CheckVocabulary(const Vocabulary& vocabulary);

// Ascending, each once: the ids that the file declares as ends, and control tokens whose text is
// one of the well-known ends ("<|im_end|>", "<|eot_id|>", ...).
std::vector<TokenId> EndIds(const Vocabulary& vocabulary);

// Depends on every field.
uint64_t Digest(const Vocabulary& vocabulary);

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_VOCABULARY_H_
