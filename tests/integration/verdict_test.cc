// SPDX-License-Identifier: Apache-2.0
// What real workers say holds them, by what they measured of this machine: no figure is given, only
// shapes of models and work whose limit is beyond doubt.
#include <gmock/gmock.h>

#include "common/roofline/step_model.h"
#include "tests/integration/worker_pair.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu {
namespace {

using roofline::Limit;

// A hundred times as fast, and long behind: a second's window is full after a hundredth of one, and
// what sleeps until a time does not.
class HastyClock final : public Clock {
 public:
  TimePoint Now() const override {
    return start_ - std::chrono::hours(100) + 100 * (steady_.Now() - start_);
  }

 private:
  SteadyClock steady_;
  const TimePoint start_ = steady_.Now();
};

// Many layers that do next to nothing.
constexpr test::TinyModelOptions kHollow = {.weights = kernels::WeightType::kQ8_0,
                                            .layers = 24,
                                            .hidden = 32,
                                            .ffn_hidden = 32,
                                            .heads = 2,
                                            .kv_heads = 1,
                                            .context = 4096};

std::unique_ptr<engine::ModelRunner> Load(const test::TinyModelOptions& model) {
  const test::TempDir dir;
  auto runner = engine::ModelRunner::Load({.model_path = test::WriteTinyModel(dir, model),
                                           .cpu = {.path = kernels::NumericPath::kInt8G32},
                                           .kv_memory_bytes = 16 << 20},
                                          nullptr);
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

class VerdictTest : public WorkerPair {
 protected:
  void SetUp() override { Start(Load(kHollow), Load(kHollow), 512, clock_); }

  Limit prefill_limit() const { return prefill_->snapshot().roofline.verdict.limit; }
  Limit decode_limit() const { return decode_->snapshot().roofline.verdict.limit; }

  HastyClock clock_;
};

TEST_F(VerdictTest, IsIdleBeforeAndAfterWork) {
  EXPECT_EQ(prefill_limit(), Limit::kIdle);
  EXPECT_EQ(decode_limit(), Limit::kIdle);
  Finish(*Begin(decode::Prompt("u", 600, 20)));
  EXPECT_TRUE(test::WaitUntil(kLong, [this] { return prefill_limit() == Limit::kIdle; }));
  EXPECT_TRUE(test::WaitUntil(kLong, [this] { return decode_limit() == Limit::kIdle; }));
}

// Its room is granted, and the prompt is not computed.
TEST_F(VerdictTest, OfADecodeWorkerIsStarvedWhileItsPromptsAreElsewhere) {
  grpc::ClientContext context;
  const auto stream = decode_stub_->Decode(&context);
  DecodeRequest open;
  *open.mutable_open()->mutable_sequence() = wire::ToProto(decode::Prompt("u", 60, 20));
  open.mutable_open()->set_attempt(1);
  stream->Write(open);
  EXPECT_TRUE(test::WaitUntil(kLong, [this] { return decode_limit() == Limit::kStarved; }));
  context.TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
  EXPECT_TRUE(test::WaitUntil(kLong, [this] { return decode_limit() == Limit::kIdle; }));
}

TEST_F(VerdictTest, OfALongPromptIsComputing) {
  const auto call = Begin(decode::Prompt("u", 4000, 20));
  EXPECT_TRUE(test::WaitUntil(kLong, [this] { return prefill_limit() == Limit::kComputeBound; }));
  Finish(*call);
}

TEST_F(VerdictTest, OfSingleRowsOfATinyModelIsOverhead) {
  int requests = 0;
  EXPECT_TRUE(test::WaitUntil(kLong, [&] {
    Finish(*Begin(decode::Prompt(std::to_string(++requests), 8, 150)));
    return decode_limit() == Limit::kOverheadBound;
  }));
}

}  // namespace
}  // namespace setu
