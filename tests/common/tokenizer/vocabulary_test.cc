// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/model/gguf_writer.h"
#include "tests/common/tokenizer/vocabularies.h"
#include "tests/support/temp_dir.h"

namespace setu::tokenizer {
namespace {

model::GgufWriter SmallFile() {
  model::GgufWriter writer;
  writer.Set("tokenizer.ggml.model", "gpt2")
      .Set("tokenizer.ggml.pre", "gpt-2")
      .Set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab", "<end>"})
      .Set("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 1, 3})
      .Set("tokenizer.ggml.merges", std::vector<std::string>{"a b"})
      .Set("tokenizer.ggml.eos_token_id", uint32_t{3})
      .Set("tokenizer.ggml.add_bos_token", false);
  return writer;
}

absl::StatusOr<Vocabulary> Read(const model::GgufWriter& writer) {
  test::TempDir dir;
  auto file = model::GgufFile::Open(dir.Write("model.gguf", writer.Bytes()));
  EXPECT_TRUE(file.ok()) << file.status();
  return ReadVocabulary(**file);
}

TEST(Vocabulary, ReadsWhatTheFileSays) {
  const auto v = Read(SmallFile());
  ASSERT_TRUE(v.ok()) << v.status();
  EXPECT_EQ(v->model, "gpt2");
  EXPECT_EQ(v->pre, "gpt-2");
  EXPECT_EQ(v->texts[2], "ab");
  EXPECT_EQ(v->types[3], TokenType::kControl);
  EXPECT_EQ(v->eos, 3);
  EXPECT_EQ(v->bos, std::nullopt);
  EXPECT_EQ(v->add_bos, false);
  EXPECT_EQ(v->add_eos, std::nullopt);
  EXPECT_TRUE(CheckVocabulary(*v).ok());
}

TEST(Vocabulary, AMissingKeyIsNamed) {
  for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens",
                          "tokenizer.ggml.merges"}) {
    model::GgufWriter writer = SmallFile();
    const auto v = Read(writer.Remove(key));
    EXPECT_EQ(v.status().code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_NE(v.status().message().find(key), std::string::npos) << v.status();
  }
}

TEST(Vocabulary, AWrongTypeIsNamed) {
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
                          "tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_bos_token"}) {
    model::GgufWriter writer = SmallFile();
    const auto v = Read(writer.Set(key, "text"));
    EXPECT_EQ(v.status().code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_NE(v.status().message().find(key), std::string::npos) << v.status();
  }
}

TEST(Vocabulary, WithoutTypesEveryTokenIsOrdinary) {
  model::GgufWriter writer = SmallFile();
  const auto v = Read(writer.Remove("tokenizer.ggml.token_type"));
  ASSERT_TRUE(v.ok());
  EXPECT_EQ(v->types, std::vector<TokenType>(4, TokenType::kNormal));
}

using Change = std::pair<const char*, std::function<void(Vocabulary&)>>;

TEST(Vocabulary, WhatDoesNotFitIsRefusedByName) {
  const std::vector<Change> changes = {
      {"model", [](Vocabulary& v) { v.model = "t5"; }},
      {"tokens", [](Vocabulary& v) { v.texts.clear(); }},
      {"tokens", [](Vocabulary& v) { v.texts[5] = v.texts[6]; }},
      {"token_type", [](Vocabulary& v) { v.types.pop_back(); }},
      {"token_type", [](Vocabulary& v) { v.types[5] = static_cast<TokenType>(7); }},
      {"token_type", [](Vocabulary& v) { v.types[5] = static_cast<TokenType>(-1); }},
      {"scores", [](Vocabulary& v) { v.scores.pop_back(); }},
      {"scores", [](Vocabulary& v) { v.scores[5] = std::nanf(""); }},
      {"scores", [](Vocabulary& v) { v.scores[5] = std::numeric_limits<float>::infinity(); }},
      {"bos_token_id", [](Vocabulary& v) { v.bos = v.size(); }},
      {"eos_token_id", [](Vocabulary& v) { v.eos = -1; }},
      {"eot_token_id", [](Vocabulary& v) { v.eot = 1 << 30; }},
      {"eom_token_id", [](Vocabulary& v) { v.eom = v.size(); }},
      {"add_bos_token", [](Vocabulary& v) { v.add_bos = true, v.bos.reset(); }},
      {"add_eos_token", [](Vocabulary& v) { v.add_eos = true, v.eos.reset(); }},
  };
  for (const auto& [field, change] : changes) {
    Vocabulary v = TrainedSpm("bare");
    ASSERT_TRUE(CheckVocabulary(v).ok());
    change(v);
    const absl::Status status = CheckVocabulary(v);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_NE(status.message().find(field), std::string::npos) << status;
  }
}

TEST(Vocabulary, EndsAreDeclaredOrWellKnownControlTokens) {
  Vocabulary v = AsciiBpe({}, {"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool>"});
  EXPECT_EQ(EndIds(v), (Ids{97, 98}));
  v.eos = 99;
  v.eot = 97;
  EXPECT_EQ(EndIds(v), (Ids{97, 98, 99}));
  v.types[98] = TokenType::kNormal;
  EXPECT_EQ(EndIds(v), (Ids{97, 99}));
}

TEST(Vocabulary, TheDigestDependsOnEveryField) {
  const std::vector<std::function<void(Vocabulary&)>> changes = {
      [](Vocabulary&) {},
      [](Vocabulary& v) { v.model = "gpt2"; },
      [](Vocabulary& v) { v.pre = "gpt-2"; },
      [](Vocabulary& v) { v.texts[5] += "x"; },
      [](Vocabulary& v) { std::swap(v.texts[5], v.texts[6]); },
      [](Vocabulary& v) { v.types[5] = TokenType::kUnused; },
      [](Vocabulary& v) { v.scores[5] += 1; },
      [](Vocabulary& v) { v.merges = {"a b"}; },
      [](Vocabulary& v) {
        v.merges = {"a", "b"};
      },
      [](Vocabulary& v) { v.bos.reset(); },
      [](Vocabulary& v) { v.eos = 5; },
      [](Vocabulary& v) { v.eot = 5; },
      [](Vocabulary& v) { v.eom = 5; },
      [](Vocabulary& v) { v.add_bos.reset(); },
      [](Vocabulary& v) { v.add_eos = false; },
      [](Vocabulary& v) { v.add_space_prefix = true; },
  };
  std::set<uint64_t> digests;
  for (const auto& change : changes) {
    Vocabulary v = TrainedSpm("bare");
    change(v);
    digests.insert(Digest(v));
  }
  EXPECT_EQ(digests.size(), changes.size());
  EXPECT_EQ(Digest(TrainedSpm("bare")), Digest(TrainedSpm("bare")));
}

}  // namespace
}  // namespace setu::tokenizer
