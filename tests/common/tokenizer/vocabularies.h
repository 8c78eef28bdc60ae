// SPDX-License-Identifier: Apache-2.0
// Vocabularies that tests make by hand, and the test data of this folder.
#ifndef SETU_TESTS_COMMON_TOKENIZER_VOCABULARIES_H_
#define SETU_TESTS_COMMON_TOKENIZER_VOCABULARIES_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/tokenizer/tokenizer.h"
#include "common/tokenizer/vocabulary.h"
#include "common/tokenizer/vocabulary_tokenizer.h"

namespace setu::tokenizer {

using Ids = std::vector<TokenId>;

inline nlohmann::json ReadJson(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  return nlohmann::json::parse(in);
}

// All printable ASCII (ids 0 to 93 are "!" to "~"), then space and newline (94 "Ġ", 95 "Ċ"), then
// the products of `merges` in order, then the control tokens.
inline Vocabulary AsciiBpe(const std::vector<std::string>& merges,
                           const std::vector<std::string>& control = {}) {
  Vocabulary v;
  v.model = "gpt2";
  v.pre = "gpt-2";
  for (char c = '!'; c <= '~'; ++c) v.texts.push_back(std::string(1, c));
  v.texts.insert(v.texts.end(), {"Ġ", "Ċ"});
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    v.texts.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  v.types.assign(v.texts.size(), TokenType::kNormal);
  v.texts.insert(v.texts.end(), control.begin(), control.end());
  v.types.resize(v.texts.size(), TokenType::kControl);
  v.merges = merges;
  return v;
}

// A vocabulary that the sentencepiece library trained; `name` is "prefixed" or "bare".
inline Vocabulary TrainedSpm(const std::string& name) {
  const nlohmann::json data = ReadJson("tests/common/tokenizer/spm.json")[name];
  Vocabulary v;
  v.model = "llama";
  v.texts = data["tokens"];
  v.scores = data["scores"].get<std::vector<float>>();
  for (int type : data["types"]) v.types.push_back(static_cast<TokenType>(type));
  v.bos = 1;
  v.eos = 2;
  v.add_bos = false;
  v.add_space_prefix = name == "prefixed";
  return v;
}

inline std::unique_ptr<Tokenizer> Make(Vocabulary vocabulary) {
  auto tokenizer = VocabularyTokenizer::Create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

inline Ids Encode(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.value_or(Ids{});
}

inline std::string ModelPath() {
  if (const char* path = std::getenv("SETU_TEST_MODEL")) return path;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = cache ? cache : std::string(home ? home : "") + "/.cache";
  return folder + "/setu/models/SmolLM2-135M-Instruct-Q4_1.gguf";
}

// Characters of one to four bytes, spaces and digits among them.
inline std::string RandomText(std::mt19937& random, size_t characters) {
  static const std::vector<std::string> kAlphabet = {
      "a",  "b",  "T",    "z",      "'s",     " ",      "  ",         "\n",  "\t", "0",
      "7",  ".",  "<",    "|",      "im_end", "é",      "ß",          "न",   "ी",  "日",
      "本", "한", "🙂", "\u200d", "\u00a0", "\u0301", "<|im_end|>", "</s>"};
  std::string text;
  for (size_t i = 0; i < characters; ++i) text += kAlphabet[random() % kAlphabet.size()];
  return text;
}

}  // namespace setu::tokenizer

#endif  // SETU_TESTS_COMMON_TOKENIZER_VOCABULARIES_H_
