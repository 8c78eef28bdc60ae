// SPDX-License-Identifier: Apache-2.0
#include "common/model/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::model {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const model::GgufWriter& writer) {
  test::TempDir dir;
  const auto file = GgufFile::Open(dir.Write("m.gguf", writer.Bytes()));
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? Inspect(**file) : "";
}

TEST(Inspect, SaysWhatAModelIs) {
  const auto text = Text(test::TinyModel({.weights = kernels::WeightType::kQ4_1}));
  EXPECT_THAT(text, ContainsRegex("architecture +'llama'"));
  EXPECT_THAT(text, ContainsRegex("attention +4 heads of 16, 2 for keys and values"));
  EXPECT_THAT(text, ContainsRegex("KV per token +256 bytes in f16, 512 in f32"));
  EXPECT_THAT(text, HasSubstr("bos 1 '<|im_start|>', eos 2 '<|im_end|>'"));
  EXPECT_THAT(text, ContainsRegex("Q4_1 +15 +91264 +57040 +5.00"));
  EXPECT_THAT(text, ContainsRegex("F32 +5 +320 +1280 +32.00"));
  EXPECT_THAT(text, ContainsRegex("all +20 "));
}

TEST(Inspect, SaysWhyAModelCannotBeUsed) {
  auto writer = test::TinyModel({});
  writer.Set("general.architecture", "mamba").Set("tokenizer.ggml.bos_token_id", uint32_t{99999});
  const auto text = Text(writer);
  EXPECT_THAT(text, ContainsRegex("not usable .*'mamba'; known: llama"));
  EXPECT_THAT(text, HasSubstr("bos 99999 (not in the vocabulary)"));
}

TEST(Inspect, NothingOfTheFileReachesTheTerminalRaw) {
  auto writer = test::TinyModel({});
  writer.Set("general.name", "\x1b[2Jgone").Set("tokenizer.ggml.pre", "\a");
  writer.Set("tokenizer.ggml.\x1b[3J_token_id", uint32_t{1});
  const auto text = Text(writer);
  EXPECT_THAT(text, HasSubstr("\\x1b[2Jgone"));
  EXPECT_THAT(text, HasSubstr("\\x1b[3J 1 '<|im_start|>'"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\a")));
}

TEST(Inspect, AnEmptyFileIsShown) {
  const auto text = Text(model::GgufWriter());
  EXPECT_THAT(text, HasSubstr("'general.architecture' is missing"));
  EXPECT_THAT(text, ContainsRegex("all +0 +0 +0"));
}

}  // namespace
}  // namespace setu::model
