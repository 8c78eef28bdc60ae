// SPDX-License-Identifier: Apache-2.0
#include "common/worker/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/wire/convert.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::worker {
namespace {

using ::testing::HasSubstr;

class DescriptionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto runner = engine::ModelRunner::Load(
        {.model_path = test::WriteTinyModel(dir_),
         .cpu = {.path = kernels::NumericPath::kF32, .isa = "portable", .threads = 1},
         .kv_memory_bytes = 512 << 10},
        nullptr);
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }

  test::TempDir dir_;
  std::unique_ptr<engine::ModelRunner> runner_;
};

TEST_F(DescriptionTest, TellsRoutersWhatTheRunnerIs) {
  const v1::DescribeResponse description = Describe(v1::ROLE_DECODE, *runner_, "i1");
  EXPECT_EQ(description.role(), v1::ROLE_DECODE);
  EXPECT_EQ(description.incarnation(), "i1");
  EXPECT_EQ(wire::Difference(description.fingerprint(), wire::ToProto(runner_->fingerprint()),
                             wire::Mixing::kRefused),
            "");
  EXPECT_EQ(description.model_name(), runner_->config().name);
  EXPECT_EQ(description.context_length(), static_cast<uint32_t>(runner_->config().context_length));
  EXPECT_EQ(description.pool_tokens(), 64u * 16u);
  EXPECT_LE(description.wire_version_min(), wire::kWireVersion);
  EXPECT_GE(description.wire_version_max(), wire::kWireVersion);
}

TEST_F(DescriptionTest, EachStartIsAnotherIncarnation) {
  const std::string first = Describe(v1::ROLE_PREFILL, *runner_, "").incarnation();
  EXPECT_EQ(first.size(), 16u);
  EXPECT_NE(first, Describe(v1::ROLE_PREFILL, *runner_, "").incarnation());
}

TEST_F(DescriptionTest, TheCapacityLineHasTheSettingsInTheMiddle) {
  const std::string line = CapacityLine(*runner_, "chunk 512, queue 16");
  EXPECT_THAT(line, HasSubstr("64 blocks x 16 tokens = 1024 tokens, chunk 512, queue 16, f32"));
  EXPECT_THAT(line, HasSubstr("on portable, 1 threads"));
}

}  // namespace
}  // namespace setu::worker
