// SPDX-License-Identifier: Apache-2.0
#include "services/cli/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/common/roofline/model_fixture.h"

namespace setu::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

DoctorFacts Facts() {
  return {.machine = {.cpu = "Some CPU",
                      .cores = 4,
                      .quota = 2.0,
                      .threads = 2,
                      .isas = {"avx512", "avx2", "portable"},
                      .memory_bytes = int64_t{16} << 30,
                      .l3_bytes = 32 << 20,
                      .huge_pages = "madvise"},
          .model = ModelFacts{.path = "m.gguf",
                              .name = "billion",
                              .quantization = "Q8_0",
                              .numerics = "int8-g32/kv-f16/r1",
                              .isa = "avx512",
                              .load_flags = " --kv-dtype int8",
                              .weight_bytes = int64_t{1} << 30,
                              .pool_tokens = 65536,
                              .pool_bytes = int64_t{2} << 30,
                              .context = 512,
                              .step = roofline::BillionModel()}};
}

TEST(DoctorReport, WithoutAModelIsAboutTheMachine) {
  DoctorFacts facts = Facts();
  facts.model.reset();
  const std::string text = DoctorText(facts);
  EXPECT_THAT(text, AllOf(HasSubstr("Some CPU, 4 cores, quota 2.0: 2 threads"),
                          HasSubstr("avx512, avx2, portable"), HasSubstr("16.0 GiB"),
                          HasSubstr("madvise"), HasSubstr("32 MiB"), HasSubstr("--model FILE")));
  EXPECT_FALSE(nlohmann::json::parse(DoctorJson(facts)).contains("model"));
}

TEST(DoctorReport, ExpectsWhatTheStepModelPredicts) {
  const ModelFacts model = *Facts().model;
  const std::vector<Expected> all = Expectations(model);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].what, "prefill 512");
  EXPECT_EQ(all[0].limit, roofline::Limit::kComputeBound);
  EXPECT_EQ(all[1].what, "decode x1");
  EXPECT_EQ(all[1].limit, roofline::Limit::kMemoryBound);
  EXPECT_DOUBLE_EQ(all[1].tokens_per_second, DecodeRate(model.step, 1, 512));
  EXPECT_DOUBLE_EQ(all[3].tokens_per_second, DecodeRate(model.step, 32, 512));
  for (const Expected& e : all) {
    EXPECT_GT(e.roof_share, 0) << e.what;
    EXPECT_LE(e.roof_share, 1) << e.what;
  }
}

TEST(DoctorReport, CountsSequencesThatThePoolHolds) {
  EXPECT_EQ(LargestBatch(*Facts().model), 65536 / 513);
}

TEST(DoctorReport, RecommendsACommandWithinTheMemory) {
  DoctorFacts facts = Facts();
  EXPECT_EQ(RecommendedCommand(facts),
            "setu up m.gguf --numerics int8-g32 --kv-dtype int8 --threads 2 --kv-memory 1027MiB");
  facts.machine.memory_bytes = int64_t{3} << 30;
  EXPECT_EQ(RecommendedCommand(facts),
            "setu up m.gguf --numerics int8-g32 --kv-dtype int8 --threads 2 --kv-memory 513MiB");
}

TEST(DoctorReport, SaysWhatItFoundAndWhatToDo) {
  const std::string text = DoctorText(Facts());
  EXPECT_THAT(text, AllOf(HasSubstr("int8-g32/kv-f16/r1 on avx512"), HasSubstr("20.0 GB/s"),
                          HasSubstr("1000 GFLOP/s"), HasSubstr("50.0 FLOP a byte"),
                          ContainsRegex("decode x1 +[0-9]+ +[0-9]+ %  memory-bound"),
                          HasSubstr("127 sequences"), HasSubstr("4-bit weights +"),
                          HasSubstr("setu up m.gguf")));
  EXPECT_THAT(text, Not(HasSubstr("cache")));
}

TEST(DoctorReport, SaysWhereBandwidthIsTheCaches) {
  DoctorFacts facts = Facts();
  facts.model->step.peaks.weight_bytes = 1 << 20;
  EXPECT_THAT(DoctorText(facts), HasSubstr("of the cache"));
}

TEST(DoctorReport, HasTheSameInJson) {
  const auto json = nlohmann::json::parse(DoctorJson(Facts()));
  EXPECT_EQ(json["machine"]["threads"], 2);
  EXPECT_EQ(json["peaks"]["bytes_per_second"], 20e9);
  EXPECT_EQ(json["expected"].size(), 4u);
  EXPECT_EQ(json["expected"][1]["limit"], "memory-bound");
  EXPECT_EQ(json["advice"]["largest_batch"], 127);
  EXPECT_EQ(json["run"], RecommendedCommand(Facts()));
}

}  // namespace
}  // namespace setu::cli
