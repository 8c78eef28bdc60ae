// SPDX-License-Identifier: Apache-2.0
// Cuts text into the words inside which byte-level BPE merges, by the regular expressions that the
// model was trained with. Immutable: any number of threads.
//
//   SETU_ASSIGN_OR_RETURN(PreTokenizerRules rules, FindPreTokenizer("smollm"));
//   SETU_ASSIGN_OR_RETURN(PreTokenizer words, PreTokenizer::Compile(rules.patterns));
//   words.Split("Hello 42", emit);   // emit("Hello"), emit(" "), emit("4"), emit("2")
#ifndef SETU_COMMON_TOKENIZER_PRE_TOKENIZER_H_
#define SETU_COMMON_TOKENIZER_PRE_TOKENIZER_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct pcre2_real_code_8;

namespace setu::tokenizer {

struct PreTokenizerRules {
  std::string_view name;  // the value of tokenizer.ggml.pre
  // Each cuts what the one before it left whole: matches and the gaps between them stand alone.
  std::span<const std::string_view> patterns;
  bool whole_words = false;  // a word that is itself a token is not merged up to
  bool adds_bos = false;     // where the file does not say
};

// INVALID_ARGUMENT for an unknown name; says which are known.
absl::StatusOr<PreTokenizerRules> FindPreTokenizer(std::string_view name);

class PreTokenizer {
 public:
  using Emit = absl::FunctionRef<absl::Status(std::string_view word)>;

  // Patterns in PCRE2's language; \s is Unicode's White_Space.
  static absl::StatusOr<PreTokenizer> Compile(std::span<const std::string_view> patterns);

  // Every byte of `text` (valid UTF-8) is in exactly one word, in order. Stops at the first error
  // that `emit` returns. INVALID_ARGUMENT where a match takes more than linear work.
  absl::Status Split(std::string_view text, Emit emit) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  using Code = std::unique_ptr<pcre2_real_code_8, FreeCode>;
  struct Matching;  // what one Split needs: PCRE2's memory and the bound on its work

  absl::Status SplitFrom(size_t level, std::string_view text, Matching& matching, Emit emit) const;

  std::vector<Code> codes_;
};

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_PRE_TOKENIZER_H_
