// SPDX-License-Identifier: Apache-2.0
// `setu bench engine` over a tiny model: what it writes, and what it refuses before it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "services/cli/commands.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::cli {
namespace {

using ::testing::HasSubstr;

class BenchEngine : public ::testing::Test {
 protected:
  int Run(const Arguments& more) {
    Arguments arguments = {"engine",    "--model",     model_,      "--isa",     "portable",
                           "--threads", "1",           "--rounds",  "2",         "--round-seconds",
                           "0",         "--kv-memory", "1MiB",      "--prefill", "40",
                           "--decode",  "1,3",         "--context", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunBench(arguments);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }
  std::string Bytes(const std::string& name) const {
    std::stringstream bytes;
    bytes << std::ifstream(dir_.File(name)).rdbuf();
    return bytes.str();
  }

  test::TempDir dir_;
  const std::string model_ = test::WriteTinyModel(dir_, {.weights = kernels::WeightType::kQ8_0});
  std::string out_, err_;
};

TEST_F(BenchEngine, WritesTheSameCasesInEveryForm) {
  ASSERT_EQ(Run({"--csv", dir_.File("r.csv"), "--json", dir_.File("r.json"), "--svg",
                 dir_.File("r.svg"), "--chunk-tokens", "16"}),
            0)
      << err_;
  const auto json = nlohmann::json::parse(Bytes("r.json"));
  ASSERT_EQ(json["cases"].size(), 3u);
  for (const auto& c : json["cases"]) {
    const std::string name = c["name"];
    EXPECT_THAT(out_, HasSubstr(name));
    EXPECT_THAT(Bytes("r.csv"), HasSubstr("," + name + ","));
    EXPECT_THAT(Bytes("r.svg"), HasSubstr(name));
    EXPECT_EQ(c["pass_seconds"].size(), 2u);
    EXPECT_GT(c["tokens_per_second"], 0);
  }
  // Three chunks read the weights three times.
  const double weights = json["model"]["weight_bytes"];
  EXPECT_GT(json["cases"][0]["bytes"], 2.5 * weights);
  EXPECT_LT(json["cases"][1]["bytes"], 1.5 * weights);
}

TEST_F(BenchEngine, WhatCannotRunIsSaidAtOnce) {
  EXPECT_EQ(Run({"--context", "511"}), 0) << err_;
  EXPECT_EQ(Run({"--context", "512"}), 1);
  EXPECT_THAT(err_, HasSubstr("decode x1: 1 sequences of 513 tokens do not fit the model's context "
                              "of 512"));
  EXPECT_EQ(Run({"--decode", "1,x"}), 1);
  EXPECT_THAT(err_, HasSubstr("--decode has 'x'"));
  EXPECT_EQ(Run({"--json", "/no/such/folder/r.json"}), 1);
  EXPECT_THAT(err_, HasSubstr("cannot write --json '/no/such/folder/r.json'"));
  EXPECT_EQ(Run({"--model", "/no/such.gguf"}), 1);
}

}  // namespace
}  // namespace setu::cli
