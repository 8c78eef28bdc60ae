// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "services/cli/load/comparison.h"

namespace setu::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Two answers of two tokens with a gap of `gap_ms`, and one refusal.
Tally Round(int gap_ms, TimePoint at = {}) {
  Tally tally({.itl_ms = 50}, TimePoint{});
  for (int i = 0; i < 2; ++i) {
    RequestTrack track{.planned = at, .prompt_tokens = 8, .cached_tokens = 4, .reusable_tokens = 8};
    tally.OnSent(track, at);
    tally.OnTokens(track, at + milliseconds(10), 1);
    tally.OnTokens(track, at + milliseconds(10 + gap_ms), 1);
    tally.OnEnd(track, kOk, "", at + milliseconds(10 + gap_ms));
  }
  tally.OnEnd({.planned = at}, "RESOURCE_EXHAUSTED", "the queue is full", at + milliseconds(1));
  tally.OnLastSent(seconds(2));
  tally.OnOver(seconds(2));
  return tally;
}

LoadReport OneSide() {
  return {.seed = 1, .sides = {{"load", "127.0.0.1:1", {{"load", {.itl_ms = 50}, {Round(20)}}}}}};
}

LoadReport TwoSides() {
  const auto side = [](const std::string& name, int gap) {
    return SideResult{
        name,
        "127.0.0.1:1",
        {{"streams", {.itl_ms = 50}, {Round(gap), Round(gap, TimePoint{} + seconds(9))}}}};
  };
  return {.seed = 1, .sides = {side("alone <1>", 20), side("beside", 60)}};
}

TEST(LoadReport, TextSaysWhatClientsSaw) {
  const std::string text = OneSide().Text();
  EXPECT_THAT(text, HasSubstr("2.00 s, 2 OK, 1 RESOURCE_EXHAUSTED\n"));
  EXPECT_THAT(text, HasSubstr("\nRESOURCE_EXHAUSTED: the queue is full\n"));
  EXPECT_THAT(text, HasSubstr("generated 4 tokens (2.0/s), prompts 16 tokens (8.0/s), 2.0/s "
                              "generated while requests came, 8 cached (50.0 % of 16 reusable)"));
  EXPECT_THAT(text, ContainsRegex("TTFT +10.00 +10.00 +10.00 +10.00 +10.00\n"));
  EXPECT_THAT(text, ContainsRegex("ITL +20.00"));
  EXPECT_THAT(text, ContainsRegex("longest gap +20.00"));
  EXPECT_THAT(text, ContainsRegex("end to end +30.00"));
  EXPECT_THAT(text, ContainsRegex("RESOURCE_EXHAUSTED +1.00"));
  EXPECT_THAT(text, HasSubstr("good: 2 (1.00/s, 66.7 % of all), ITL <= 50 ms"));
  EXPECT_THAT(text, Not(HasSubstr("sent late")));
}

TEST(LoadReport, HasNoTableWhereNothingEndedOk) {
  Tally tally({}, TimePoint{});
  tally.OnEnd({}, "RESOURCE_EXHAUSTED", "full", TimePoint{} + milliseconds(1));
  const LoadReport report{.seed = 1, .sides = {{"load", "a", {{"load", {}, {tally}}}}}};
  EXPECT_THAT(report.Text(), HasSubstr("no request ended OK"));
  EXPECT_THAT(report.Text(), Not(ContainsRegex("ITL +[0-9]")));
  EXPECT_FALSE(report.ok());
}

TEST(LoadReport, SaysThatTheGeneratorWasLate) {
  LoadReport report = OneSide();
  report.sides[0].workloads[0].rounds[0].lag.Record(80);
  EXPECT_THAT(report.Text(),
              ContainsRegex("this program sent late: p99 [0-9.]+ ms, most 80.0 ms\n"));
}

TEST(LoadReport, JsonSaysWhatTheTextSays) {
  const auto json = nlohmann::json::parse(OneSide().Json(), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  const auto& load = json["sides"][0]["workloads"][0];
  EXPECT_EQ(load["requests"]["OK"], 2);
  EXPECT_EQ(load["by_status"]["RESOURCE_EXHAUSTED"]["p99_ms"], 1.0);
  EXPECT_EQ(load["time_to_first_token"]["p50_ms"], 10.0);
  EXPECT_EQ(load["cached_tokens"], 8);
  EXPECT_EQ(load["good"], 2);
  EXPECT_EQ(load["timeline"][0]["tokens"], 4);
  EXPECT_EQ(load["timeline"][0]["inter_token_latency"]["p99_ms"], 20.0);
}

TEST(LoadReport, OfSeveralSidesComparesThemWithTheFirst) {
  const std::string text = TwoSides().Text();
  EXPECT_THAT(text, HasSubstr("== alone <1>\n4.00 s in 2 rounds, 4 OK"));
  EXPECT_THAT(text, ContainsRegex("streams +alone <1> +beside +ratio"));
  EXPECT_THAT(text, ContainsRegex("itl p99 ms +20 +60 +3.000  worse\n"));
  EXPECT_THAT(text, ContainsRegex("ttft p99 ms +10 +10 +1.000  within noise\n"));
}

TEST(LoadReport, IsReadBackForAComparison) {
  const auto parsed = ParseReport("a.json", TwoSides().Json());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const std::vector<ComparedSide> direct = ComparedSides(TwoSides());
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ(ComparisonText((*parsed)[0], (*parsed)[1]), ComparisonText(direct[0], direct[1]));
  EXPECT_THAT(ComparisonText(ComparedSides(OneSide())[0], direct[1]),
              HasSubstr("one round on a side says nothing of the noise"));
}

TEST(LoadReport, OfAnotherKindIsRefused) {
  for (const char* wrong :
       {"", "[]", "{}", "{\"sides\": []}", "{\"sides\": [1]}", "{\"sides\": [{\"name\": 1}]}",
        R"({"sides": [{"name": "a", "workloads": [{"name": "b"}]}]})",
        R"({"sides": [{"name": "a", "workloads": [{"name": "b", "figures": {"c": ["d"]}}]}]})",
        R"({"sides": [{"name": "a", "workloads": [{"name": "b", "figures": {"c": []}}]}]})"}) {
    const auto parsed = ParseReport("a.json", wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr("a.json is no report of setu bench"));
  }
}

TEST(HtmlPage, ShowsEverythingAndLoadsNothing) {
  const std::string page = HtmlPage(TwoSides());
  for (const char* title : {"time to first token", "inter-token latency", "generated tokens",
                            "requests", "end to end", "alone &lt;1&gt; p99"}) {
    EXPECT_THAT(page, HasSubstr(title));
  }
  EXPECT_THAT(page, ContainsRegex("itl p99 ms +20 +60"));
  for (const char* outside : {"<script", "http://", "https://", "src=", "href=", "nan", "<1>"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

}  // namespace
}  // namespace setu::cli
