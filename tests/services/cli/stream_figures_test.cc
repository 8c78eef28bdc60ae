// SPDX-License-Identifier: Apache-2.0
#include "services/cli/stream_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

v1::GenerateResponse Delta(int tokens) {
  v1::GenerateResponse response;
  for (int i = 0; i < tokens; ++i) response.mutable_delta()->add_token_ids(7);
  return response;
}

v1::GenerateResponse Finished(uint32_t tokens) {
  v1::GenerateResponse response;
  response.mutable_finished()->mutable_usage()->set_completion_tokens(tokens);
  response.mutable_finished()->mutable_usage()->set_prompt_tokens(5);
  return response;
}

TEST(StreamFigures, RateIsOfTheTokensBehindTheFirstDelta) {
  const TimePoint sent{};
  StreamFigures figures(sent);
  figures.On(Delta(8), sent + milliseconds(40));
  figures.On(Delta(1), sent + milliseconds(240));
  figures.On(Delta(1), sent + milliseconds(440));
  figures.On(Finished(10), sent + milliseconds(900));
  EXPECT_THAT(figures.Line(),
              HasSubstr("TTFT 40.0 ms, 5.0 tokens/s, 5 prompt + 10 generated tokens"));
}

TEST(StreamFigures, CountAllChoices) {
  StreamFigures figures(TimePoint{});
  figures.On(Finished(3), TimePoint{});
  figures.On(Finished(4), TimePoint{});
  EXPECT_THAT(figures.Line(), HasSubstr("5 prompt + 7 generated tokens"));
}

TEST(StreamFigures, SayWhichNumericPathsWereMixed) {
  v1::GenerateResponse response = Finished(3);
  StreamFigures figures(TimePoint{});
  figures.On(response, TimePoint{});
  EXPECT_THAT(figures.Line(), Not(HasSubstr("mixed")));
  response.mutable_finished()->add_mixed_numerics("f32/kv-f32/r1");
  response.mutable_finished()->add_mixed_numerics("int8-g32/kv-f16/r1");
  figures.On(response, TimePoint{});
  EXPECT_THAT(figures.Line(), HasSubstr(", mixed numerics f32/kv-f32/r1 + int8-g32/kv-f16/r1"));
}

TEST(StreamFigures, HaveNoRateWhereNothingCameBehindTheFirst) {
  StreamFigures figures(TimePoint{});
  figures.On(Delta(9), TimePoint{} + milliseconds(1));
  figures.On(Finished(9), TimePoint{} + milliseconds(2));
  EXPECT_THAT(figures.Line(), Not(HasSubstr("tokens/s")));
}

}  // namespace
}  // namespace setu::cli
