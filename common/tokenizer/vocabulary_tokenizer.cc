// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/vocabulary_tokenizer.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/model/gguf_cursor.h"
#include "common/tokenizer/bpe.h"
#include "common/tokenizer/byte_level.h"
#include "common/tokenizer/spm.h"
#include "common/tokenizer/utf8.h"

namespace setu::tokenizer {
namespace {

// "<0x0A>"
std::optional<char> ReadByteToken(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

std::string ReadOrdinary(std::string_view model, const std::string& text) {
  if (model == "llama") return absl::StrReplaceAll(text, {{kSpmSpace.data(), " "}});
  return BytesOfByteLevel(text).value_or(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> VocabularyTokenizer::Create(Vocabulary vocabulary) {
  SETU_RETURN_IF_ERROR(CheckVocabulary(vocabulary));
  std::unique_ptr<VocabularyTokenizer> tokenizer(new VocabularyTokenizer(std::move(vocabulary)));
  tokenizer->digest_ = Digest(tokenizer->vocabulary_);
  tokenizer->end_ids_ = EndIds(tokenizer->vocabulary_);
  tokenizer->MarkControlTokens();
  SETU_RETURN_IF_ERROR(tokenizer->ReadBytes());
  SETU_RETURN_IF_ERROR(tokenizer->AddTokens());
  SETU_RETURN_IF_ERROR(tokenizer->MakeEncoder());
  return tokenizer;
}

// What begins or ends a text is a control token, also where the file's list of types says less.
void VocabularyTokenizer::MarkControlTokens() {
  if (vocabulary_.bos) vocabulary_.types[*vocabulary_.bos] = TokenType::kControl;
  for (TokenId id : end_ids_) vocabulary_.types[id] = TokenType::kControl;
}

absl::Status VocabularyTokenizer::ReadBytes() {
  bytes_.reserve(vocabulary_.texts.size());
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    const std::string& text = vocabulary_.texts[id];
    switch (vocabulary_.types[id]) {
      case TokenType::kNormal:
      case TokenType::kUnused:
        bytes_.push_back(ReadOrdinary(vocabulary_.model, text));
        break;
      case TokenType::kUnknown:
      case TokenType::kControl:
      case TokenType::kUserDefined:
        bytes_.push_back(text);
        break;
      case TokenType::kByte: {
        const std::optional<char> byte = ReadByteToken(text);
        if (!byte) {
          return absl::InvalidArgumentError(absl::StrCat("load failed: byte token ", id, " is ",
                                                         model::Quoted(text), "; needs '<0xHH>'"));
        }
        bytes_.push_back(std::string(1, *byte));
        break;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status VocabularyTokenizer::AddTokens() {
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    const bool user_defined = vocabulary_.types[id] == TokenType::kUserDefined;
    const std::string& text = vocabulary_.texts[id];
    if ((!user_defined && !IsControl(id)) || text.empty()) continue;
    if (text.size() > AddedTokens::kMaxBytes) {
      return absl::InvalidArgumentError(absl::StrCat("load failed: control token ", id, " has ",
                                                     text.size(), " bytes; at most ",
                                                     AddedTokens::kMaxBytes));
    }
    (user_defined ? user_defined_ : control_).Add(text, id);
  }
  return absl::OkStatus();
}

absl::Status VocabularyTokenizer::MakeEncoder() {
  bool adds_bos = true;  // SentencePiece's custom
  if (vocabulary_.model == "gpt2") {
    SETU_ASSIGN_OR_RETURN(const PreTokenizerRules rules, FindPreTokenizer(vocabulary_.pre));
    SETU_ASSIGN_OR_RETURN(encoder_, BpeEncoder::Create(vocabulary_, rules));
    adds_bos = rules.adds_bos;
  } else {
    std::array<TokenId, 256> byte_ids;
    byte_ids.fill(-1);
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
      if (vocabulary_.types[id] != TokenType::kByte) continue;
      byte_ids[static_cast<uint8_t>(bytes_[id][0])] = id;
    }
    add_space_prefix_ = vocabulary_.add_space_prefix.value_or(true);
    encoder_ = std::make_unique<SpmEncoder>(vocabulary_, byte_ids, add_space_prefix_);
  }
  // A file that names no BOS gets none.
  add_bos_ = vocabulary_.add_bos.value_or(adds_bos && vocabulary_.bos.has_value());
  add_eos_ = vocabulary_.add_eos.value_or(false);
  return absl::OkStatus();
}

std::string_view VocabularyTokenizer::TextOf(const std::optional<TokenId>& id) const {
  return id ? std::string_view(vocabulary_.texts[*id]) : std::string_view();
}

bool VocabularyTokenizer::IsControl(TokenId id) const {
  return vocabulary_.types[id] == TokenType::kControl ||
         vocabulary_.types[id] == TokenType::kUnknown;
}

absl::StatusOr<std::vector<TokenId>> VocabularyTokenizer::EncodeRuns(std::span<const TextRun> runs,
                                                                     bool add_special) const {
  std::string text;
  for (const TextRun& run : runs) text += run.text;
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("text has ", text.size(), " bytes; at most ", kMaxTextBytes));
  }
  if (const size_t valid = ValidUtf8Prefix(text); valid != text.size()) {
    return absl::InvalidArgumentError(absl::StrCat("text is not valid UTF-8 at offset ", valid));
  }
  std::vector<TokenId> ids;
  size_t done = 0;
  size_t run_end = 0;
  for (const TextRun& run : runs) {
    const size_t run_begin = run_end;
    run_end += run.text.size();
    if (!run.parse_special) continue;
    const std::string_view until_end = std::string_view(text).substr(0, run_end);
    for (auto match = control_.Find(until_end, run_begin); match;
         match = control_.Find(until_end, match->end)) {
      SETU_RETURN_IF_ERROR(EncodeText(text, done, match->begin, ids));
      ids.push_back(match->id);
      done = match->end;
    }
  }
  SETU_RETURN_IF_ERROR(EncodeText(text, done, text.size(), ids));
  if (add_special) AddBosAndEos(ids);
  return ids;
}

// [begin, end) of `text` holds no control token.
absl::Status VocabularyTokenizer::EncodeText(std::string_view text, size_t begin, size_t end,
                                             std::vector<TokenId>& ids) const {
  const std::string_view until_end = text.substr(0, end);
  while (begin < end) {
    const auto match = user_defined_.Find(until_end, begin);
    const size_t ordinary_end = match ? match->begin : end;
    if (begin < ordinary_end) {
      SETU_RETURN_IF_ERROR(encoder_->Encode(text.substr(begin, ordinary_end - begin), begin, ids));
    }
    if (match) ids.push_back(match->id);
    begin = match ? match->end : end;
  }
  return absl::OkStatus();
}

void VocabularyTokenizer::AddBosAndEos(std::vector<TokenId>& ids) const {
  if (add_bos_ && (ids.empty() || ids.front() != *vocabulary_.bos)) {
    ids.insert(ids.begin(), *vocabulary_.bos);
  }
  if (add_eos_ && (ids.empty() || ids.back() != *vocabulary_.eos)) ids.push_back(*vocabulary_.eos);
}

std::string_view VocabularyTokenizer::Bytes(TokenId id, bool special) const {
  SETU_CHECK(id >= 0 && id < vocabulary_.size(), "an id is inside the vocabulary");
  return special || !IsControl(id) ? std::string_view(bytes_[id]) : std::string_view();
}

std::string VocabularyTokenizer::Decode(std::span<const TokenId> ids, bool special) const {
  std::string bytes;
  bool prefixed = add_space_prefix_;
  for (TokenId id : ids) {
    std::string_view piece = Bytes(id, special);
    if (prefixed && !IsControl(id)) {
      // Encode puts none before a user-defined token: a space there is its own.
      const bool own = vocabulary_.types[id] == TokenType::kUserDefined;
      if (!own && piece.substr(0, 1) == " ") piece.remove_prefix(1);
      prefixed = false;
    }
    bytes += piece;
  }
  std::string text;
  TakeWholeUtf8(bytes, text);
  if (!bytes.empty()) text += kReplacementCharacter;
  return text;
}

}  // namespace setu::tokenizer
