// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a vocabulary: takes control and user-defined tokens out of the text, gives the
// rest to the model's algorithm, and keeps the rules of BOS and EOS.
//
//   SETU_ASSIGN_OR_RETURN(auto tokenizer, VocabularyTokenizer::Create(vocabulary));
#ifndef SETU_COMMON_TOKENIZER_VOCABULARY_TOKENIZER_H_
#define SETU_COMMON_TOKENIZER_VOCABULARY_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tokenizer/added_tokens.h"
#include "common/tokenizer/text_encoder.h"
#include "common/tokenizer/tokenizer.h"
#include "common/tokenizer/vocabulary.h"

namespace setu::tokenizer {

class VocabularyTokenizer final : public Tokenizer {
 public:
  static constexpr size_t kMaxTextBytes = size_t{1} << 28;  // offsets stay below 2^31

  // INVALID_ARGUMENT where the vocabulary is wrong; names the field.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(Vocabulary vocabulary);

  absl::StatusOr<std::vector<TokenId>> EncodeRuns(std::span<const TextRun> runs,
                                                  bool add_special) const override;
  std::string_view Bytes(TokenId id, bool special) const override;
  std::string Decode(std::span<const TokenId> ids, bool special) const override;
  int32_t vocabulary() const override { return vocabulary_.size(); }
  const std::vector<TokenId>& end_ids() const override { return end_ids_; }
  std::string_view bos_text() const override { return TextOf(vocabulary_.bos); }
  std::string_view eos_text() const override { return TextOf(vocabulary_.eos); }
  uint64_t digest() const override { return digest_; }

 private:
  explicit VocabularyTokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  // The steps of Create, in order.
  void MarkControlTokens();
  absl::Status ReadBytes();
  absl::Status AddTokens();
  absl::Status MakeEncoder();

  std::string_view TextOf(const std::optional<TokenId>& id) const;
  bool IsControl(TokenId id) const;
  absl::Status EncodeText(std::string_view text, size_t begin, size_t end,
                          std::vector<TokenId>& ids) const;
  void AddBosAndEos(std::vector<TokenId>& ids) const;

  Vocabulary vocabulary_;
  std::vector<TokenId> end_ids_;
  std::vector<std::string> bytes_;  // by id
  AddedTokens control_;             // matched in runs that parse them
  AddedTokens user_defined_;        // matched everywhere
  std::unique_ptr<TextEncoder> encoder_;
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool add_space_prefix_ = false;
  uint64_t digest_ = 0;
};

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_VOCABULARY_TOKENIZER_H_
