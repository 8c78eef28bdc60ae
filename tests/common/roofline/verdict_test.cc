// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/verdict.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/common/roofline/model_fixture.h"

namespace setu::roofline {
namespace {

// A second in which a worker did such steps one after another, and nothing else.
Window Busy(const StepModel& model, const StepRows& rows) {
  Window window{.seconds = 1, .busy = 1};
  const StepTerms terms = model.Terms(rows);
  const double steps = 1 / terms.seconds();
  window.terms = {steps * terms.memory, steps * terms.compute, steps * terms.fixed};
  const StepWork work = WorkOf(model.shape, rows);
  window.work.weight_bytes = steps * work.bytes();
  window.work.product_operations = steps * work.operations();
  return window;
}

StepRows Prefill(int64_t tokens) {
  StepRows rows;
  rows.Add(tokens, 0, true);
  return rows;
}

Limit JudgedLimit(const StepModel& model, const Window& window) {
  return Judge(window, model.peaks, false).limit;
}

TEST(Verdict, OfPrefillIsComputeBound) {
  const StepModel model = BillionModel();
  EXPECT_EQ(JudgedLimit(model, Busy(model, Prefill(512))), Limit::kComputeBound);
}

TEST(Verdict, OfOneSequenceDecodingIsMemoryBound) {
  const StepModel model = BillionModel();
  EXPECT_EQ(JudgedLimit(model, Busy(model, DecodeRows(1, 512))), Limit::kMemoryBound);
}

TEST(Verdict, OfALargeBatchIsComputeBound) {
  const StepModel model = BillionModel();
  EXPECT_EQ(JudgedLimit(model, Busy(model, DecodeRows(256, 64))), Limit::kComputeBound);
}

TEST(Verdict, OfATinyModelIsOverheadBound) {
  const StepModel model = TinyStepModel();
  EXPECT_EQ(JudgedLimit(model, Busy(model, DecodeRows(1, 16))), Limit::kOverheadBound);
}

TEST(Verdict, WithoutWorkIsIdleOrStarved) {
  const Peaks peaks = BillionModel().peaks;
  EXPECT_EQ(Judge({.seconds = 1}, peaks, false).limit, Limit::kIdle);
  EXPECT_EQ(Judge({.seconds = 1}, peaks, true).limit, Limit::kStarved);
  EXPECT_EQ(Judge({}, peaks, false).limit, Limit::kIdle) << "no time has passed";
}

TEST(Verdict, IsTheLargestPartOfTheWindow) {
  const StepModel model = BillionModel();
  Window window = Busy(model, DecodeRows(1, 512));
  window.seconds = 1.9;
  EXPECT_EQ(JudgedLimit(model, window), Limit::kMemoryBound);
  window.seconds = 2.1;
  EXPECT_EQ(JudgedLimit(model, window), Limit::kIdle);
  window.waiting_link = 1.05;
  EXPECT_EQ(JudgedLimit(model, window), Limit::kLinkBound);
}

// Others on the machine make steps longer than predicted: the same limit, a smaller share of it.
TEST(Verdict, OfASlowedMachineHasSmallerShares) {
  const StepModel model = BillionModel();
  Window window = Busy(model, DecodeRows(1, 512));
  const Verdict alone = Judge(window, model.peaks, false);
  window.terms = {window.terms.memory / 2, window.terms.compute / 2, window.terms.fixed / 2};
  window.work.weight_bytes /= 2;
  window.work.product_operations /= 2;
  const Verdict slowed = Judge(window, model.peaks, false);
  EXPECT_EQ(slowed.limit, alone.limit);
  EXPECT_DOUBLE_EQ(slowed.bandwidth_share, alone.bandwidth_share / 2);
  EXPECT_DOUBLE_EQ(slowed.arithmetic_share, alone.arithmetic_share / 2);
  EXPECT_DOUBLE_EQ(slowed.intensity, alone.intensity);
}

TEST(Verdict, HasShareAndIntensityOfTheWork) {
  Window window{.seconds = 2, .busy = 1};
  window.work.kv_read_bytes = 5;
  window.work.attention_operations = 40;
  const Verdict verdict =
      Judge(window, {.bytes_per_second = 10, .operations_per_second = 400}, false);
  EXPECT_DOUBLE_EQ(verdict.bandwidth_share, 0.5);
  EXPECT_DOUBLE_EQ(verdict.arithmetic_share, 0.1);
  EXPECT_DOUBLE_EQ(verdict.intensity, 8);
}

TEST(Limits, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Limit limit : kLimits) names.insert(Name(limit));
  EXPECT_EQ(names.size(), kLimits.size());
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace setu::roofline
