// SPDX-License-Identifier: Apache-2.0
// A prefill and a decode worker, joined as in a cluster, with the test as their router: chunked
// prompts, frames while they compute, forks and cancels give the tokens of a runner alone.
#include "tests/integration/worker_pair.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu {
namespace {

class WorkerPairTest : public WorkerPair {
 protected:
  void SetUp() override {
    Start(decode::LoadTiny(model_, 64), decode::LoadTiny(model_, 64), 16, clock_);
  }

  const test::TempDir dir_;
  const std::string model_ = test::WriteTinyModel(dir_);
  decode::FakePrefill alone_{model_};
  SteadyClock clock_;
};

TEST_F(WorkerPairTest, ManyRequestsAtOnceGetTheTokensOfEachAlone) {
  std::vector<wire::Sequence> sequences;
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 8; ++i) {
    sequences.push_back(decode::Prompt(std::string("u") + char('0' + i), 5 + 12 * i, 15, {0, 1}));
    calls.push_back(Begin(sequences[i]));
  }
  for (int i = 0; i < 8; ++i) {
    const Ids ids = Finish(*calls[i]);
    for (uint32_t choice : {0, 1}) {
      EXPECT_EQ(ids.at(choice), alone_.Alone(sequences[i], choice)) << i;
    }
  }
}

// What both count is what the request needs: chunks of 16 in one worker, 19 tokens in the other.
TEST_F(WorkerPairTest, CountTheWorkOfEachStep) {
  const auto call = Begin(decode::Prompt("u", 60, 20));
  EXPECT_EQ(Finish(*call).at(0).size(), 20u);
  prefill_->BeginDrain();
  EXPECT_TRUE(prefill_->WaitDrained(kLong));
  decode_->BeginDrain();
  EXPECT_TRUE(decode_->WaitDrained(kLong));

  const auto runner = decode::LoadTiny(model_, 64);
  const roofline::ModelShape shape =
      roofline::ShapeOf(runner->config(), runner->weights(), runner->fingerprint().layout);
  roofline::StepWork prefill, decode;
  for (int32_t start = 0; start < 60; start += 16) {
    roofline::StepRows rows;
    rows.Add(std::min(16, 60 - start), start, start + 16 >= 60);
    prefill += WorkOf(shape, rows);
  }
  for (int32_t at = 60; at < 79; ++at) decode += WorkOf(shape, roofline::DecodeRows(1, at));
  EXPECT_EQ(prefill_->snapshot().roofline.bytes, prefill.bytes());
  EXPECT_EQ(prefill_->snapshot().roofline.operations, prefill.operations());
  EXPECT_EQ(decode_->snapshot().roofline.bytes, decode.bytes());
  EXPECT_EQ(decode_->snapshot().roofline.operations, decode.operations());
}

TEST_F(WorkerPairTest, CancelledRequestsLeaveTheOthersAlone) {
  const wire::Sequence kept = decode::Prompt("kept", 60, 20);
  std::vector<std::unique_ptr<Call>> cancelled;
  for (char name = 'a'; name < 'e'; ++name) {
    cancelled.push_back(Begin(decode::Prompt(std::string(1, name), 90, 60)));
  }
  const auto call = Begin(kept);
  for (const auto& other : cancelled) {
    other->decode_context.TryCancel();
    other->prefill_context.TryCancel();
  }
  EXPECT_EQ(Finish(*call).at(0), alone_.Alone(kept, 0));
  for (const auto& other : cancelled) {
    EXPECT_FALSE(other->decode->Finish().ok());
    EXPECT_FALSE(other->prefill->Finish().ok());
  }
}

}  // namespace
}  // namespace setu
