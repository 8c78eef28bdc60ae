// SPDX-License-Identifier: Apache-2.0
#include "services/router/answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "services/router/validator.h"
#include "tests/services/router/byte_tokenizer.h"

namespace setu::router {
namespace {

using engine::EndReason;
using engine::SampledToken;
using engine::TokenId;

ValidRequest Valid(const ByteTokenizer& tokenizer, const v1::GenerateRequest& request) {
  const Validator validator({.name = "bytes", .tokenizer = &tokenizer}, [] { return 1; });
  auto valid = validator.Validate(request.SerializeAsString(), {.context_length = 4096});
  EXPECT_TRUE(valid.ok()) << valid.status();
  return *std::move(valid);
}

v1::GenerateRequest WithStops(const std::vector<std::string>& stops, uint32_t min_tokens = 0) {
  v1::GenerateRequest request;
  request.set_text("go");
  for (const std::string& stop : stops) request.mutable_stopping()->add_strings(stop);
  request.mutable_sampling()->set_min_tokens(min_tokens);
  return request;
}

std::vector<SampledToken> Tokens(std::string_view text) {
  std::vector<SampledToken> tokens;
  for (char c : text) tokens.push_back({.id = static_cast<uint8_t>(c), .top = {}});
  return tokens;
}

// What a client has: the deltas joined.
struct Client {
  std::string text;
  std::vector<uint32_t> ids;
  void Take(const std::optional<v1::Delta>& delta) {
    if (!delta) return;
    EXPECT_EQ(delta->first_token(), ids.size()) << "neither gap nor repeat";
    EXPECT_GT(delta->token_ids_size(), 0);
    text += delta->text();
    ids.insert(ids.end(), delta->token_ids().begin(), delta->token_ids().end());
  }
};

class AnswerTest : public ::testing::Test {
 protected:
  // Pushes one byte token at a time.
  std::string Say(Answer& answer, std::string_view text) {
    const size_t before = client_.text.size();
    for (const SampledToken& token : Tokens(text)) {
      client_.Take(answer.Push(static_cast<int32_t>(answer.ids().size()), {&token, 1}));
    }
    return client_.text.substr(before);
  }
  v1::Finished End(Answer& answer, EndReason reason) {
    auto [delta, finished] = answer.Finish(reason);
    client_.Take(delta);
    EXPECT_EQ(finished.usage().completion_tokens(), client_.ids.size());
    EXPECT_EQ(static_cast<size_t>(answer.delivered()), client_.ids.size());
    return finished;
  }

  const ByteTokenizer tokenizer_;
  Client client_;
};

TEST_F(AnswerTest, TextThatCannotBecomeAStopStringGoesOutAtOnce) {
  const ValidRequest request = Valid(tokenizer_, WithStops({"STOP"}));
  Answer answer(tokenizer_, request, 3);
  EXPECT_EQ(Say(answer, "a"), "a");
  EXPECT_EQ(Say(answer, "ST"), "");
  EXPECT_EQ(Say(answer, "x"), "STx");
  EXPECT_EQ(Say(answer, "SSTO"), "S");
  const v1::Finished finished = End(answer, EndReason::kMaxTokens);
  EXPECT_EQ(client_.text, "aSTxSSTO");
  EXPECT_EQ(finished.index(), 3u);
  EXPECT_EQ(finished.finish_reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(finished.stop_match(), "");
}

TEST_F(AnswerTest, ACharacterOverTokenBordersComesWholeWithItsIds) {
  const ValidRequest request = Valid(tokenizer_, WithStops({}));
  Answer answer(tokenizer_, request, 0);
  EXPECT_EQ(Say(answer, "\xE2\x82"), "");
  EXPECT_TRUE(client_.ids.empty());
  EXPECT_EQ(answer.ids().size(), 2u) << "a resume sends them all the same";
  EXPECT_EQ(Say(answer, "\xAC"), "\u20AC");
  EXPECT_EQ(client_.ids.size(), 3u);
}

TEST_F(AnswerTest, AnUnfinishedCharacterAtTheEndIsReplaced) {
  const ValidRequest request = Valid(tokenizer_, WithStops({}));
  Answer answer(tokenizer_, request, 0);
  Say(answer, "ok\xE2\x82");
  End(answer, EndReason::kMaxTokens);
  EXPECT_EQ(client_.text, "ok\uFFFD");
  EXPECT_EQ(client_.ids.size(), 4u);
}

TEST_F(AnswerTest, StopStringOverTokenBordersCutsTextAndDropsOvershoot) {
  const ByteTokenizer tokenizer(true, {"oneST", "OPtwo"});
  const TokenId first = ByteTokenizer::kMessageEnd + 1;
  const ValidRequest request = Valid(tokenizer, WithStops({"STOP"}));
  Answer answer(tokenizer, request, 0);
  const SampledToken tokens[] = {
      {.id = first, .top = {}}, {.id = first + 1, .top = {}}, {.id = 'x', .top = {}}};
  client_.Take(answer.Push(0, tokens));
  EXPECT_TRUE(answer.stopped());
  EXPECT_EQ(answer.Push(3, Tokens("more")), std::nullopt);
  const v1::Finished finished = End(answer, EndReason::kNone);
  EXPECT_EQ(client_.text, "one");
  EXPECT_EQ(client_.ids.size(), 2u) << "through the completing token, no further";
  EXPECT_EQ(finished.finish_reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(finished.stop_match(), "STOP");
}

TEST_F(AnswerTest, AStopStringOnTheLastTokenWinsOverLength) {
  const ValidRequest request = Valid(tokenizer_, WithStops({"b"}));
  Answer answer(tokenizer_, request, 0);
  Say(answer, "ab");
  EXPECT_EQ(End(answer, EndReason::kMaxTokens).finish_reason(), v1::FINISH_REASON_STOP);
}

TEST_F(AnswerTest, AnEndIdIsCountedAndDeliveredWithoutText) {
  v1::GenerateRequest wanted = WithStops({"hi!"});
  wanted.mutable_stopping()->add_token_ids('.');
  const ValidRequest request = Valid(tokenizer_, wanted);
  Answer answer(tokenizer_, request, 0);
  Say(answer, "hi.");
  const v1::Finished finished = End(answer, EndReason::kEndId);
  EXPECT_EQ(client_.text, "hi");
  EXPECT_EQ(client_.ids, (std::vector<uint32_t>{'h', 'i', '.'}));
  EXPECT_EQ(finished.finish_reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(finished.stop_match(), "");
}

TEST_F(AnswerTest, AnIgnoredEndIdGoesByWithoutText) {
  v1::GenerateRequest wanted = WithStops({});
  wanted.mutable_stopping()->set_ignore_eos(true);
  const ValidRequest request = Valid(tokenizer_, wanted);
  Answer answer(tokenizer_, request, 0);
  const SampledToken tokens[] = {
      {.id = 'a', .top = {}}, {.id = ByteTokenizer::kEnd, .top = {}}, {.id = 'b', .top = {}}};
  client_.Take(answer.Push(0, tokens));
  EXPECT_EQ(client_.text, "ab");
  EXPECT_EQ(client_.ids.size(), 3u);
}

TEST_F(AnswerTest, MinTokensDelaysStopStringsButNotTheOneThatEndsLater) {
  const ValidRequest request = Valid(tokenizer_, WithStops({"aa"}, /*min_tokens=*/4));
  Answer answer(tokenizer_, request, 0);
  EXPECT_EQ(Say(answer, "aaa"), "aa") << "the last may begin the one that counts";
  EXPECT_FALSE(answer.stopped());
  Say(answer, "a");
  EXPECT_TRUE(answer.stopped());
  EXPECT_EQ(client_.text, "aa");
  EXPECT_EQ(client_.ids.size(), 4u);
}

TEST_F(AnswerTest, RepeatedIndexesAreDropped) {
  const ValidRequest request = Valid(tokenizer_, WithStops({}));
  Answer answer(tokenizer_, request, 0);
  client_.Take(answer.Push(0, Tokens("abc")));
  EXPECT_EQ(answer.Push(0, Tokens("ab")), std::nullopt);
  client_.Take(answer.Push(1, Tokens("bcde")));
  EXPECT_EQ(client_.text, "abcde");
}

TEST_F(AnswerTest, LogprobsTravelWithTheirIds) {
  v1::GenerateRequest wanted = WithStops({"ab"});
  wanted.mutable_output()->set_logprobs(1);
  const ValidRequest request = Valid(tokenizer_, wanted);
  Answer answer(tokenizer_, request, 0);
  const SampledToken a{.id = 'a', .logprob = -0.5f, .top = {{'b', -0.25f}}};
  const SampledToken c{.id = 'c', .logprob = -2.0f, .top = {}};
  EXPECT_EQ(answer.Push(0, {&a, 1}), std::nullopt);
  const auto delta = answer.Push(1, {&c, 1});
  ASSERT_TRUE(delta);
  ASSERT_EQ(delta->logprobs_size(), 2);
  EXPECT_EQ(delta->logprobs(0).logprob(), -0.5f);
  ASSERT_EQ(delta->logprobs(0).top_size(), 1);
  EXPECT_EQ(delta->logprobs(0).top(0).token_id(), static_cast<uint32_t>('b'));
  EXPECT_EQ(delta->logprobs(1).logprob(), -2.0f);
}

struct Reference {
  std::string text;
  size_t tokens = 0;
  std::string stop_match;
};

// From the whole answer at once: the first prefix of tokens whose text holds a stop string that
// counts; in it the stop string that is complete first, the longest of those that end together.
Reference Whole(const std::vector<std::string>& tokens, const std::vector<std::string>& stops,
                size_t min_tokens) {
  std::string text;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const size_t before = text.size();
    text += tokens[t];
    if (t + 1 < min_tokens) continue;
    for (size_t end = before + 1; end <= text.size(); ++end) {
      std::string match;
      for (const std::string& stop : stops) {
        const bool here = text.substr(0, end).ends_with(stop);
        if (here && stop.size() > match.size()) match = stop;
      }
      if (!match.empty()) return {text.substr(0, end - match.size()), t + 1, match};
    }
  }
  return {text, tokens.size(), ""};
}

// Random texts of one- to four-byte characters, cut into tokens anywhere, also inside characters.
TEST(AnswerProperty, AnySplitIntoTokensAndPushesGivesTheWholeTextsAnswer) {
  const std::string characters[] = {"a", "b", "\u00e9", "\u20ac", "\U0001F600"};
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    auto write = [&](size_t most) {
      std::string text;
      for (size_t n = 1 + random() % most; n > 0; --n) text += characters[random() % 5];
      return text;
    };
    const std::string text = write(30);
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = write(3);
    std::vector<std::string> tokens;
    for (size_t at = 0; at < text.size();) {
      tokens.push_back(text.substr(at, random() % 6));  // sometimes empty, as a control token is
      at += tokens.back().size();
    }
    const uint32_t min_tokens = random() % 3 == 0 ? random() % tokens.size() : 0;
    const ByteTokenizer tokenizer(true, tokens);
    const ValidRequest request = Valid(tokenizer, WithStops(stops, min_tokens));

    Answer answer(tokenizer, request, 0);
    Client client;
    std::vector<SampledToken> sampled;
    for (size_t i = 0; i < tokens.size(); ++i) {
      sampled.push_back(
          {.id = ByteTokenizer::kMessageEnd + 1 + static_cast<TokenId>(i), .top = {}});
    }
    for (size_t at = 0; at < sampled.size() && !answer.stopped();) {
      const size_t count = std::min<size_t>(1 + random() % 4, sampled.size() - at);
      client.Take(answer.Push(static_cast<int32_t>(at), std::span(sampled).subspan(at, count)));
      at += count;
    }
    auto [delta, finished] = answer.Finish(EndReason::kMaxTokens);
    client.Take(delta);

    // A stop string ends with a character, so the token that ends the character completes it.
    const Reference expected = Whole(tokens, stops, min_tokens);
    ASSERT_EQ(client.text, expected.text) << "seed " << seed;
    ASSERT_EQ(client.ids.size(), expected.tokens) << "seed " << seed;
    ASSERT_EQ(finished.stop_match(), expected.stop_match) << "seed " << seed;
    ASSERT_EQ(finished.usage().completion_tokens(), expected.tokens) << "seed " << seed;
  }
}

}  // namespace
}  // namespace setu::router
