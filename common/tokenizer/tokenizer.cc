// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/tokenizer.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/tokenizer/utf8.h"
#include "common/tokenizer/vocabulary.h"
#include "common/tokenizer/vocabulary_tokenizer.h"

namespace setu::tokenizer {

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(const model::GgufFile& file) {
  SETU_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(file));
  return VocabularyTokenizer::Create(std::move(vocabulary));
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                                       const EncodeOptions& options) const {
  const TextRun run = {.text = text, .parse_special = options.parse_special};
  return EncodeRuns({&run, 1}, options.add_special);
}

std::string StreamDecoder::Push(TokenId id) {
  held_ += tokenizer_.Bytes(id);
  std::string text;
  TakeWholeUtf8(held_, text);
  return text;
}

std::string StreamDecoder::Flush() {
  if (held_.empty()) return "";
  held_.clear();
  return std::string(kReplacementCharacter);
}

}  // namespace setu::tokenizer
