// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/gguf_cursor.h"
#include "common/tokenizer/text_map.h"

namespace setu::tokenizer {
namespace {

using model::GgufFile;

constexpr std::array<std::string_view, 12> kEndTexts = {
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
};

absl::Status Wrong(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("load failed: tokenizer.ggml.", std::string(field), " ", std::string(what)));
}

template <typename T>
absl::Status ReadOptional(absl::StatusOr<T> value, std::optional<T>& out) {
  if (absl::IsNotFound(value.status())) return absl::OkStatus();
  SETU_ASSIGN_OR_RETURN(out, std::move(value));
  return absl::OkStatus();
}

absl::Status ReadId(const GgufFile& file, std::string_view key, std::optional<TokenId>& out) {
  std::optional<uint32_t> id;
  SETU_RETURN_IF_ERROR(ReadOptional(file.Uint32(key), id));
  if (!id) return absl::OkStatus();
  if (*id > static_cast<uint32_t>(std::numeric_limits<TokenId>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("load failed: ", std::string(key), " is ", *id));
  }
  out = static_cast<TokenId>(*id);
  return absl::OkStatus();
}

absl::Status ReadTypes(const GgufFile& file, Vocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  if (!file.Has(kKey)) {  // the format's rule for a missing list
    vocabulary.types.assign(vocabulary.texts.size(), TokenType::kNormal);
    return absl::OkStatus();
  }
  SETU_ASSIGN_OR_RETURN(const std::vector<int32_t>* types, file.Int32Array(kKey));
  vocabulary.types.reserve(types->size());
  for (int32_t type : *types) vocabulary.types.push_back(static_cast<TokenType>(type));
  return absl::OkStatus();
}

absl::Status ReadAlgorithm(const GgufFile& file, Vocabulary& vocabulary) {
  if (vocabulary.model == "gpt2") {
    SETU_ASSIGN_OR_RETURN(vocabulary.pre, file.String("tokenizer.ggml.pre"));
    SETU_ASSIGN_OR_RETURN(const auto* merges, file.StringArray("tokenizer.ggml.merges"));
    vocabulary.merges = *merges;
  } else if (vocabulary.model == "llama") {
    SETU_ASSIGN_OR_RETURN(const auto* scores, file.FloatArray("tokenizer.ggml.scores"));
    vocabulary.scores = *scores;
  }
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> Read(const GgufFile& file) {
  Vocabulary v;
  SETU_ASSIGN_OR_RETURN(v.model, file.String("tokenizer.ggml.model"));
  SETU_ASSIGN_OR_RETURN(const auto* texts, file.StringArray("tokenizer.ggml.tokens"));
  v.texts = *texts;
  SETU_RETURN_IF_ERROR(ReadTypes(file, v));
  SETU_RETURN_IF_ERROR(ReadAlgorithm(file, v));
  SETU_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.bos_token_id", v.bos));
  SETU_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eos_token_id", v.eos));
  SETU_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eot_token_id", v.eot));
  SETU_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eom_token_id", v.eom));
  SETU_RETURN_IF_ERROR(ReadOptional(file.Bool("tokenizer.ggml.add_bos_token"), v.add_bos));
  SETU_RETURN_IF_ERROR(ReadOptional(file.Bool("tokenizer.ggml.add_eos_token"), v.add_eos));
  SETU_RETURN_IF_ERROR(
      ReadOptional(file.Bool("tokenizer.ggml.add_space_prefix"), v.add_space_prefix));
  return v;
}

absl::Status CheckTokens(const Vocabulary& v) {
  absl::flat_hash_set<std::string_view, TextHash> seen;
  seen.reserve(v.texts.size());
  for (size_t id = 0; id < v.texts.size(); ++id) {
    const auto type = static_cast<int32_t>(v.types[id]);
    if (type < 1 || type > 6) {
      return Wrong("token_type", absl::StrCat("of id ", id, " is ", type, "; known: 1 to 6"));
    }
    if (!v.texts[id].empty() && !seen.insert(v.texts[id]).second) {
      return Wrong("tokens", absl::StrCat("holds the text of id ", id, " twice"));
    }
  }
  for (size_t id = 0; id < v.scores.size(); ++id) {
    if (!std::isfinite(v.scores[id])) {
      return Wrong("scores", absl::StrCat("of id ", id, " is not finite"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckId(std::string_view field, std::optional<TokenId> id, int32_t size) {
  if (!id || (*id >= 0 && *id < size)) return absl::OkStatus();
  return Wrong(field, absl::StrCat("is ", *id, "; the vocabulary has ", size, " tokens"));
}

// FNV-1a over fields that each say their length, so that no two lists run into one another.
class Hash {
 public:
  void Bytes(std::string_view bytes) {
    Number(bytes.size());
    for (char c : bytes) Mix(static_cast<uint8_t>(c));
  }
  void Number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) Mix(static_cast<uint8_t>(value >> shift));
  }
  template <typename T>
  void Optional(std::optional<T> value) {
    Number(value.has_value());
    Number(static_cast<uint64_t>(value.value_or(T{})));
  }
  uint64_t value() const { return value_; }

 private:
  void Mix(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001B3; }
  uint64_t value_ = 0xCBF29CE484222325;
};

}  // namespace

absl::StatusOr<Vocabulary> ReadVocabulary(const GgufFile& file) {
  absl::StatusOr<Vocabulary> vocabulary = Read(file);
  if (absl::IsNotFound(vocabulary.status())) {
    return absl::InvalidArgumentError(vocabulary.status().message());
  }
  return vocabulary;
}

absl::Status CheckVocabulary(const Vocabulary& v) {
  if (v.model != "gpt2" && v.model != "llama") {
    return Wrong("model", absl::StrCat("is ", model::Quoted(v.model), "; known: gpt2, llama"));
  }
  if (v.texts.empty() || v.texts.size() > size_t{std::numeric_limits<int32_t>::max()}) {
    return Wrong("tokens", absl::StrCat("has ", v.texts.size(), " entries"));
  }
  const auto needs = [&](std::string_view field, size_t size) {
    if (size == v.texts.size()) return absl::OkStatus();
    return Wrong(field, absl::StrCat("has ", size, " entries for ", v.texts.size(), " tokens"));
  };
  SETU_RETURN_IF_ERROR(needs("token_type", v.types.size()));
  if (v.model == "llama") SETU_RETURN_IF_ERROR(needs("scores", v.scores.size()));
  SETU_RETURN_IF_ERROR(CheckTokens(v));
  SETU_RETURN_IF_ERROR(CheckId("bos_token_id", v.bos, v.size()));
  SETU_RETURN_IF_ERROR(CheckId("eos_token_id", v.eos, v.size()));
  SETU_RETURN_IF_ERROR(CheckId("eot_token_id", v.eot, v.size()));
  SETU_RETURN_IF_ERROR(CheckId("eom_token_id", v.eom, v.size()));
  if (v.add_bos.value_or(false) && !v.bos) return Wrong("add_bos_token", "needs bos_token_id");
  if (v.add_eos.value_or(false) && !v.eos) return Wrong("add_eos_token", "needs eos_token_id");
  return absl::OkStatus();
}

std::vector<TokenId> EndIds(const Vocabulary& v) {
  std::vector<TokenId> ends;
  for (std::optional<TokenId> id : {v.eos, v.eot, v.eom}) {
    if (id) ends.push_back(*id);
  }
  for (TokenId id = 0; id < v.size(); ++id) {
    if (v.types[id] == TokenType::kControl &&
        std::find(kEndTexts.begin(), kEndTexts.end(), v.texts[id]) != kEndTexts.end()) {
      ends.push_back(id);
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

uint64_t Digest(const Vocabulary& v) {
  Hash hash;
  hash.Bytes(v.model);
  hash.Bytes(v.pre);
  hash.Number(v.texts.size());
  for (const std::string& text : v.texts) hash.Bytes(text);
  for (TokenType type : v.types) hash.Number(static_cast<uint64_t>(type));
  hash.Number(v.scores.size());
  for (float score : v.scores) {
    uint32_t bits = 0;
    std::memcpy(&bits, &score, sizeof(bits));
    hash.Number(bits);
  }
  hash.Number(v.merges.size());
  for (const std::string& merge : v.merges) hash.Bytes(merge);
  for (std::optional<TokenId> id : {v.bos, v.eos, v.eot, v.eom}) hash.Optional(id);
  for (std::optional<bool> flag : {v.add_bos, v.add_eos, v.add_space_prefix}) hash.Optional(flag);
  return hash.value();
}

}  // namespace setu::tokenizer
