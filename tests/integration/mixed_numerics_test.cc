// SPDX-License-Identifier: Apache-2.0
// Prefill on one numeric path and decode on another: refused by name, or with
// --allow-mixed-numerics a whole answer that says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/numeric_paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct Pair {
  PathAndKv prefill, decode;
};

std::string NameOf(const PathAndKv& path) { return PathAndKvOf({path, 0}); }

class MixedNumerics : public ::testing::TestWithParam<Pair> {
 protected:
  Cluster::Options Options(bool allow) const {
    Cluster::Options options{.model = model_};
    options.prefill_runner.cpu = GetParam().prefill.On(options.prefill_runner.cpu);
    options.decode_runner.cpu = GetParam().decode.On(options.decode_runner.cpu);
    options.prefill_runner.allow_mixed_numerics = options.decode_runner.allow_mixed_numerics =
        options.router.workers.allow_mixed_numerics = allow;
    return options;
  }
  std::string PathOf(const engine::RunnerOptions& options) const {
    return (*kernels::MakeCpuOps(options.cpu))->path_name();
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_, {.weights = kernels::WeightType::kQ4_1});
  const v1::GenerateRequest request_ = [] {
    v1::GenerateRequest request = GreedyText("What holds a bridge, and for how long?", 40);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }();
};

TEST_P(MixedNumerics, AllowedGiveAWholeAnswerThatSaysSo) {
  const Cluster::Options options = Options(true);
  Cluster cluster(options);
  ASSERT_TRUE(cluster.WaitReady());
  for (int turn = 0; turn < 2; ++turn) {
    Answer answer = Generate(cluster.stub(), request_);
    ASSERT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.ids().size(), 40u);
    const v1::Finished& finished = answer.choices[0].finished[0];
    EXPECT_EQ(finished.finish_reason(), v1::FINISH_REASON_LENGTH);
    EXPECT_THAT(finished.mixed_numerics(), UnorderedElementsAre(PathOf(options.prefill_runner),
                                                                PathOf(options.decode_runner)));
    EXPECT_GT(finished.timings().kv_bytes(), 0u);
  }
  EXPECT_EQ(cluster.decode().snapshot().prefix_tokens_known, 0u) << "mixed KV is not shared";
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST_P(MixedNumerics, AreRefusedUnlessAllowed) {
  const Cluster::Options options = Options(false);
  Cluster cluster(options);
  ASSERT_TRUE(WaitUntil(std::chrono::seconds(30),
                        [&] { return cluster.router().snapshot().decode_unusable.misfit == 1; }));
  const Answer answer = Generate(cluster.stub(), request_);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(answer.status.error_message(), HasSubstr(PathOf(options.prefill_runner)));
  EXPECT_THAT(answer.status.error_message(), HasSubstr(PathOf(options.decode_runner)));
  EXPECT_THAT(answer.status.error_message(), HasSubstr("--allow-mixed-numerics"));
}

using kernels::KvType;
using kernels::NumericPath;
INSTANTIATE_TEST_SUITE_P(
    Paths, MixedNumerics,
    ::testing::Values(
        Pair{{NumericPath::kF32, KvType::kF32}, {NumericPath::kInt8G32, KvType::kF16}},
        Pair{{NumericPath::kBf16Tile, KvType::kBF16}, {NumericPath::kInt8G32, KvType::kInt8}},
        Pair{{NumericPath::kInt8G32, KvType::kInt8}, {NumericPath::kBf16Tile, KvType::kBF16}},
        Pair{{NumericPath::kF32, KvType::kF16}, {NumericPath::kInt8G32, KvType::kF16}}),
    [](const auto& info) {
      return NameOf(info.param.prefill) + "_to_" + NameOf(info.param.decode);
    });

}  // namespace
}  // namespace setu::test
