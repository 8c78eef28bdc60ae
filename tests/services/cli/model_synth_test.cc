// SPDX-License-Identifier: Apache-2.0
// `setu model synth`: what it writes loads, whatever the type; what it refuses leaves nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/engine/model_runner.h"
#include "services/cli/commands.h"
#include "tests/support/temp_dir.h"

namespace setu::cli {
namespace {

using ::testing::HasSubstr;

class ModelSynth : public ::testing::Test {
 protected:
  // Of a small shape, with `more` behind.
  int Make(const std::string& name, const Arguments& more) {
    Arguments arguments = {"--out",        dir_.File(name), "--layers",  "2",  "--hidden",   "256",
                           "--ffn",        "256",           "--heads",   "4",  "--kv-heads", "2",
                           "--vocabulary", "300",           "--context", "128"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunModelSynth(arguments);
    ::testing::internal::GetCapturedStdout();
    said_ = ::testing::internal::GetCapturedStderr();
    return code;
  }
  std::string Bytes(const std::string& name) const {
    std::stringstream bytes;
    bytes << std::ifstream(dir_.File(name)).rdbuf();
    return bytes.str();
  }
  bool Empty() const { return std::filesystem::is_empty(dir_.path()); }

  test::TempDir dir_;
  std::string said_;
};

TEST_F(ModelSynth, EveryTypeLoads) {
  for (const char* type : {"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k",
                           "q5_k", "q6_k", "q4_k_m", "q5_k_m"}) {
    ASSERT_EQ(Make("m.gguf", {"--type", type}), 0) << said_;
    const auto runner = engine::ModelRunner::Load({.model_path = dir_.File("m.gguf"),
                                                   .cpu = {.isa = "portable", .threads = 1},
                                                   .kv_memory_bytes = 1 << 20},
                                                  nullptr);
    EXPECT_TRUE(runner.ok()) << type << ": " << runner.status();
  }
}

TEST_F(ModelSynth, TheSeedDecidesNotTheThreads) {
  ASSERT_EQ(Make("one", {"--threads", "1"}), 0) << said_;
  ASSERT_EQ(Make("two", {"--threads", "2"}), 0);
  ASSERT_EQ(Make("other", {"--seed", "9"}), 0);
  EXPECT_TRUE(Bytes("one") == Bytes("two"));
  EXPECT_FALSE(Bytes("one") == Bytes("other"));
}

TEST_F(ModelSynth, WhatMakesNoModelIsRefusedAndLeavesNothing) {
  EXPECT_EQ(Make("m.gguf", {"--type", "q4_k", "--hidden", "64"}), 1);
  EXPECT_THAT(said_, HasSubstr("rows of 64 values are not whole blocks of 256 that Q4_K needs"));
  EXPECT_EQ(Make("m.gguf", {"--type", "q9"}), 1);
  EXPECT_THAT(said_, HasSubstr("weight type 'q9' is not one of f32"));
  EXPECT_EQ(Make("m.gguf", {"--kv-heads", "3"}), 1);
  EXPECT_THAT(said_, HasSubstr("head_count_kv"));
  EXPECT_TRUE(Empty());
  EXPECT_EQ(Make("no/such/m.gguf", {}), 1);
  EXPECT_THAT(said_, HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace setu::cli
