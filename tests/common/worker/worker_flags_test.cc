// SPDX-License-Identifier: Apache-2.0
#include "common/worker/worker_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::worker {
namespace {

class KeepingLogger final : public Logger {
 public:
  void Write(Level, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

class WorkerFlagsTest : public ::testing::Test {
 protected:
  absl::StatusOr<config::Options::Outcome> Parse(std::vector<const char*> arguments) {
    config::Options options("setu-test", "Tests.", {});
    flags_.AddTo(options);
    arguments.insert(arguments.begin(), "setu-test");
    return options.Parse(static_cast<int>(arguments.size()), arguments.data(), {}, logger_);
  }

  test::TempDir dir_;
  KeepingLogger logger_;
  WorkerFlags flags_;
};

TEST_F(WorkerFlagsTest, LoadsTheModelThatTheFlagsName) {
  const std::string path = test::WriteTinyModel(dir_);
  ASSERT_TRUE(Parse({"--model", path.c_str(), "--numerics", "f32", "--threads", "1", "--kv-memory",
                     "512KiB", "--isa", "portable"})
                  .ok());
  auto runner = flags_.LoadModel({.max_rows = 128, .max_logits = 4}, logger_);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_EQ((*runner)->options().max_rows, 128);
  EXPECT_EQ((*runner)->options().max_logits, 4);
  EXPECT_EQ((*runner)->ops().isa_name(), "portable");
  EXPECT_EQ((*runner)->pool().total(), 64);  // of 8 KiB
  ASSERT_FALSE(logger_.lines.empty());
  EXPECT_THAT(logger_.lines.back(), ::testing::HasSubstr("loaded "));
}

TEST_F(WorkerFlagsTest, KvDtypeIsThePathsOwnUnlessAskedFor) {
  const std::string path = test::WriteTinyModel(dir_);
  const auto numerics = [&](const char* kv_dtype) {
    EXPECT_TRUE(Parse({"--model", path.c_str(), "--numerics", "int8-g32", "--kv-dtype", kv_dtype,
                       "--threads", "1", "--kv-memory", "512KiB"})
                    .ok());
    const auto runner = flags_.LoadModel({.max_rows = 128, .max_logits = 4}, logger_);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return runner.ok() ? (*runner)->fingerprint().numerics : "";
  };
  EXPECT_EQ(numerics("auto"), "int8-g32/kv-f16/r1");
  EXPECT_EQ(numerics("bf16"), "int8-g32/kv-bf16/r1");
}

TEST_F(WorkerFlagsTest, MixedNumericsAreRefusedUnlessAllowed) {
  const std::string path = test::WriteTinyModel(dir_);
  ASSERT_TRUE(Parse({"--model", path.c_str(), "--threads", "1"}).ok());
  const auto allows = [&] {
    const auto runner = flags_.LoadModel({.max_rows = 128, .max_logits = 4}, logger_);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return runner.ok() && (*runner)->fingerprint().allow_mixed_numerics;
  };
  EXPECT_FALSE(allows());
  ASSERT_TRUE(Parse({"--model", path.c_str(), "--threads", "1", "--allow-mixed-numerics"}).ok());
  EXPECT_TRUE(allows());
}

TEST_F(WorkerFlagsTest, MemoryThatIsNotUsedIsTold) {
  const std::string path = test::WriteTinyModel(dir_);
  const auto last_line = [&](const char* kv_memory) {
    EXPECT_TRUE(Parse({"--model", path.c_str(), "--numerics", "f32", "--threads", "1",
                       "--kv-memory", kv_memory})
                    .ok());
    EXPECT_TRUE(flags_.LoadModel({.max_rows = 128, .max_logits = 4}, logger_).ok());
    return logger_.lines.back();
  };
  // 4 x 512 tokens in blocks of 16, each of 8 KiB: a MiB.
  EXPECT_EQ(last_line("64MiB"),
            "--kv-memory is 64 MiB; 1 MiB of it are used, what 4 whole contexts of 512 tokens "
            "fill");
  EXPECT_THAT(last_line("1028KiB"), ::testing::HasSubstr("loaded "));
}

TEST_F(WorkerFlagsTest, SaysWhatBecameOfThePackedWeights) {
  const std::string path = test::WriteTinyModel(dir_);
  ASSERT_TRUE(Parse({"--model", path.c_str(), "--numerics", "int8-g32", "--weights", "int8",
                     "--threads", "1", "--cache-packed"})
                  .ok());
  const auto lines = [&] {
    logger_.lines.clear();
    EXPECT_TRUE(flags_.LoadModel({.max_rows = 128, .max_logits = 4}, logger_).ok());
    std::vector<std::string> told;
    std::ranges::copy_if(logger_.lines, std::back_inserter(told), [](const std::string& line) {
      return line.find("packed weights") != std::string::npos;
    });
    return told;
  };
  const std::string cache = path + ".lanes-int8.packed";
  using ::testing::ElementsAre, ::testing::StartsWith, ::testing::AllOf, ::testing::HasSubstr;
  EXPECT_THAT(lines(), ElementsAre(StartsWith("wrote packed weights to " + cache)));
  EXPECT_THAT(lines(), ElementsAre("read packed weights from " + cache));
  std::filesystem::resize_file(cache, 100);
  EXPECT_THAT(lines(), ElementsAre(StartsWith("packed weights in " + cache + " are not used: "),
                                   StartsWith("wrote packed weights to " + cache)));
  std::filesystem::remove(cache);
  std::filesystem::create_directory(cache + ".tmp");
  EXPECT_THAT(lines(),
              ElementsAre(AllOf(StartsWith("packed weights are not kept in " + cache),
                                HasSubstr("Is a directory"), HasSubstr("make room for "))));
}

TEST_F(WorkerFlagsTest, PackedWeightsAreNotKeptUnlessAskedFor) {
  const std::string path = test::WriteTinyModel(dir_);
  ASSERT_TRUE(Parse({"--model", path.c_str(), "--threads", "1"}).ok());
  ASSERT_TRUE(flags_.LoadModel({.max_rows = 128, .max_logits = 4}, logger_).ok());
  const std::filesystem::directory_iterator files(dir_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(WorkerFlagsTest, SaysWhatIsWrong) {
  EXPECT_EQ(Parse({}).status().code(), absl::StatusCode::kInvalidArgument);  // no --model
  ASSERT_TRUE(Parse({"--model", "/nowhere/m.gguf"}).ok());
  const absl::Status status =
      flags_.LoadModel({.max_rows = 128, .max_logits = 4}, logger_).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/nowhere/m.gguf"));
}

}  // namespace
}  // namespace setu::worker
