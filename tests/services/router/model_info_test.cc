// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/model_runner.h"
#include "services/router/router.h"
#include "tests/support/tiny_model.h"

namespace setu::router {
namespace {

absl::StatusOr<ModelInfo> Read(const model::GgufWriter& writer) {
  const test::TempDir dir;
  const auto file = model::GgufFile::Open(dir.Write("model.gguf", writer.Bytes()));
  EXPECT_TRUE(file.ok()) << file.status();
  return ReadModelInfo(**file);
}

TEST(ModelInfo, IsReadFromTheModelsFile) {
  const auto info = Read(test::TinyModel({}));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->architecture, "llama");
  EXPECT_EQ(info->context_length, 512);
  EXPECT_EQ(info->temperature, 1.0f);
  EXPECT_NE(info->chat, nullptr);
}

// It is compared with the workers' fingerprints.
TEST(ModelInfo, TheTokenizersDigestIsThatOfAWorkerWithTheSameFile) {
  const test::TempDir dir;
  const std::string path = test::WriteTinyModel(dir);
  const auto file = model::GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto info = ReadModelInfo(**file);
  ASSERT_TRUE(info.ok()) << info.status();
  const auto runner =
      engine::ModelRunner::Load({.model_path = path, .cpu = {.threads = 1}}, nullptr);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_EQ(info->tokenizer_digest, (*runner)->fingerprint().tokenizer);
}

TEST(ModelInfo, TheModelsOwnTemperatureIsTakenWithinBounds) {
  model::GgufWriter writer = test::TinyModel({});
  const auto info = Read(writer.Set("general.sampling.temp", 0.6f));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->temperature, 0.6f);
  const auto wrong = Read(writer.Set("general.sampling.temp", -1.0f));
  EXPECT_EQ(wrong.status().message(), "general.sampling.temp is -1; it must be in [0, 100]");
}

}  // namespace
}  // namespace setu::router
