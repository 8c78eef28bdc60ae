// SPDX-License-Identifier: Apache-2.0
// What a client may send and what it gets: bad input is refused by name and harms nobody, and an
// answer ends where it should.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

class Api : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    cluster_ = new Cluster({.model = WriteTinyModel(*dir_)});
    ASSERT_TRUE(cluster_->WaitReady());
  }
  static void TearDownTestSuite() {
    delete cluster_;
    delete dir_;
  }
  Answer Ask(const v1::GenerateRequest& request) { return Generate(cluster_->stub(), request); }
  Answer Greedy(uint32_t tokens) {
    v1::GenerateRequest request = GreedyText("The bridge", tokens);
    request.mutable_stopping()->set_ignore_eos(true);
    return Ask(request);
  }
  uint64_t DecodeTokens() { return cluster_->decode().snapshot().tokens; }
  void TearDown() override { EXPECT_EQ(cluster_->Quiesce(), ""); }

  static TempDir* dir_;
  static Cluster* cluster_;
};
TempDir* Api::dir_ = nullptr;
Cluster* Api::cluster_ = nullptr;

struct BadCase {
  const char* name;
  std::function<void(v1::GenerateRequest&)> spoil;
  const char* named;  // what the error must mention
};

TEST_F(Api, BadInputIsRefusedByNameAndTheNextRequestIsUnharmed) {
  const auto sampling = [](auto set) {
    return [set](v1::GenerateRequest& r) { set(*r.mutable_sampling()); };
  };
  const std::vector<BadCase> cases = {
      {"no input", [](auto& r) { r.clear_input(); }, "must be set"},
      {"too long", [](auto& r) { r.set_text(std::string(600, 'a')); }, "512"},
      {"max_tokens 0", sampling([](auto& s) { s.set_max_tokens(0); }), "max_tokens"},
      {"max_tokens over", sampling([](auto& s) { s.set_max_tokens(100000); }), "max_tokens"},
      {"temperature NaN", sampling([](auto& s) { s.set_temperature(NAN); }), "temperature"},
      {"temperature inf", sampling([](auto& s) { s.set_temperature(INFINITY); }), "temperature"},
      {"temperature -1", sampling([](auto& s) { s.set_temperature(-1); }), "temperature"},
      {"top_p 0", sampling([](auto& s) { s.set_top_p(0); }), "top_p"},
      {"top_p 2", sampling([](auto& s) { s.set_top_p(2); }), "top_p"},
      {"min_p 2", sampling([](auto& s) { s.set_min_p(2); }), "min_p"},
      {"penalty 0", sampling([](auto& s) { s.set_repetition_penalty(0); }), "repetition_penalty"},
      {"n 0", sampling([](auto& s) { s.set_n(0); }), "n"},
      {"n 1e9", sampling([](auto& s) { s.set_n(1'000'000'000); }), "n"},
      {"bias id", sampling([](auto& s) { (*s.mutable_logit_bias())[1 << 30] = 1; }), "logit_bias"},
      {"prompt id", [](auto& r) { r.mutable_token_ids()->add_ids(1 << 30); }, "token_ids"},
      {"stop id", [](auto& r) { r.mutable_stopping()->add_token_ids(1 << 30); }, "token_ids"},
      {"stop ''", [](auto& r) { r.mutable_stopping()->add_strings(""); }, "strings"},
      {"logprobs", [](auto& r) { r.mutable_output()->set_logprobs(1000); }, "logprobs"},
      {"echo+logprobs",
       [](auto& r) {
         r.mutable_output()->set_logprobs(1);
         r.mutable_output()->set_echo(true);
       },
       "echo"},
  };
  const Answer before = Greedy(8);
  for (const BadCase& bad : cases) {
    v1::GenerateRequest request = GreedyText("The bridge", 8);
    bad.spoil(request);
    Answer answer = Ask(request);
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad.name;
    EXPECT_NE(answer.status.error_message().find(bad.named), std::string::npos)
        << bad.name << ": " << answer.status.error_message();
  }
  Answer after = Greedy(8);
  EXPECT_TRUE(after.ok()) << after.Explain();
  EXPECT_EQ(after.ids(), Answer(before).ids());
}

TEST_F(Api, AnUnknownModelIsNotFound) {
  v1::GenerateRequest request = GreedyText("a", 1);
  request.set_model("no-such-model");
  EXPECT_EQ(Ask(request).status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(Api, TheSameRequestIdTwiceIsOnlyALabel) {
  v1::GenerateRequest request = GreedyText("a", 4);
  request.set_request_id("twice");
  Answer first = Ask(request), second = Ask(request);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.started[0].request_id(), "twice");
  EXPECT_EQ(first.ids(), second.ids());
}

TEST_F(Api, OneTokenNeedsNoDecodeWork) {
  const uint64_t before = DecodeTokens();
  Answer answer = Greedy(1);
  ASSERT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids().size(), 1u);
  EXPECT_EQ(answer.choices[0].finished[0].finish_reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(cluster_->Quiesce(), "");
  EXPECT_EQ(DecodeTokens(), before);
}

TEST_F(Api, AnEndIdAsFirstTokenEndsTheAnswerThere) {
  const uint64_t before = DecodeTokens();
  Answer reference = Greedy(3);
  v1::GenerateRequest request = GreedyText("The bridge", 30);
  request.mutable_stopping()->add_token_ids(reference.ids()[0]);
  const uint64_t middle = DecodeTokens();
  Answer answer = Ask(request);
  ASSERT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids().size(), 1u);
  EXPECT_EQ(answer.choices[0].text, "");
  EXPECT_EQ(answer.choices[0].finished[0].finish_reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(cluster_->Quiesce(), "");
  EXPECT_EQ(DecodeTokens(), middle);
  EXPECT_GT(middle, before);
}

TEST_F(Api, AStopStringEndsTheTextBeforeTheMatch) {
  Answer reference = Greedy(40);
  ASSERT_TRUE(reference.ok()) << reference.Explain();
  const std::string& text = reference.choices[0].text;
  // Whole characters out of the middle, over token borders for a vocabulary of bytes.
  const auto starts = [&](size_t at) { return (text[at] & 0xC0) != 0x80; };
  for (size_t at : {size_t{4}, text.size() / 2}) {
    while (!starts(at)) ++at;
    size_t end = at + 3;
    while (end < text.size() && !starts(end)) ++end;
    const std::string stop = text.substr(at, end - at);
    v1::GenerateRequest request = GreedyText("The bridge", 40);
    request.mutable_stopping()->set_ignore_eos(true);
    request.mutable_stopping()->add_strings(stop);
    Answer answer = Ask(request);
    ASSERT_TRUE(answer.ok()) << answer.Explain();
    EXPECT_EQ(answer.choices[0].text, text.substr(0, text.find(stop)));
    EXPECT_EQ(answer.choices[0].finished[0].stop_match(), stop);
  }
}

TEST_F(Api, ChoicesDifferAndEachFinishesOnce) {
  v1::GenerateRequest request = GreedyText("The bridge", 12);
  request.mutable_sampling()->set_temperature(1.0f);
  request.mutable_sampling()->set_seed(5);
  request.mutable_sampling()->set_n(4);
  request.mutable_stopping()->set_ignore_eos(true);
  Answer answer = Ask(request);
  ASSERT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.choices.size(), 4u);
  EXPECT_NE(answer.ids(0), answer.ids(1));
  Answer again = Ask(request);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(answer.ids(i), again.ids(i));
}

TEST_F(Api, EchoReturnsThePrompt) {
  v1::GenerateRequest request = GreedyText("The bridge", 2);
  request.mutable_output()->set_echo(true);
  Answer answer = Ask(request);
  ASSERT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.choices[0].echo, "The bridge");
}

TEST_F(Api, TokenizeAndDetokenizeAreInverse) {
  v1::TokenizeRequest request;
  request.set_text("Bridges \xC3\xA9\xE2\x82\xAC <|im_end|>");
  request.set_add_special(false);
  v1::TokenizeResponse ids;
  grpc::ClientContext first;
  ASSERT_TRUE(cluster_->stub().Tokenize(&first, request, &ids).ok());
  EXPECT_EQ(std::count(ids.token_ids().begin(), ids.token_ids().end(), uint32_t{kTinyEnd}), 0);
  v1::DetokenizeRequest back;
  *back.mutable_token_ids() = ids.token_ids();
  v1::DetokenizeResponse text;
  grpc::ClientContext second;
  ASSERT_TRUE(cluster_->stub().Detokenize(&second, back, &text).ok());
  EXPECT_EQ(text.text(), request.text());
}

TEST_F(Api, TimingsAddUp) {
  Answer answer = Greedy(10);
  ASSERT_TRUE(answer.ok()) << answer.Explain();
  const v1::Timings& t = answer.choices[0].finished[0].timings();
  EXPECT_GT(t.kv_bytes(), 0u);
  EXPECT_EQ(t.attempts(), 1u);
  EXPECT_GT(t.queue_ms() + t.grant_ms() + t.prefill_ms(), 0.0);
  EXPECT_NEAR(t.first_token_ms(), t.queue_ms() + t.grant_ms() + t.prefill_ms(), 1e-3);
  EXPECT_LE(t.transfer_ms(), t.decode_ms());
}

}  // namespace
}  // namespace setu::test
