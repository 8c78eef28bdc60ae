// SPDX-License-Identifier: Apache-2.0
#include "services/router/validator.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <random>

#include "common/base/utf8.h"
#include "tests/services/router/byte_tokenizer.h"

namespace setu::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kTemplate[] =
    "{% for m in messages %}<|im_start|>{{ m['role'] }}:{{ m['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}";

// A request in protobuf's text format, which can say nan and inf.
template <typename Message = v1::GenerateRequest>
std::string Bytes(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message.SerializeAsString();
}

class ValidatorTest : public ::testing::Test {
 protected:
  ValidatorTest() : chat_(*chat::ChatTemplate::Parse(kTemplate)) {}

  absl::StatusOr<ValidRequest> Validate(const std::string& text, Limits limits = {100, {}}) {
    return validator_.Validate(Bytes(text), limits);
  }
  ValidRequest Valid(const std::string& text, Limits limits = {100, {}}) {
    auto valid = Validate(text, limits);
    EXPECT_TRUE(valid.ok()) << text << ": " << valid.status();
    return *std::move(valid);
  }
  std::string Refused(const std::string& text, Limits limits = {100, {}}) {
    const auto valid = Validate(text, limits);
    EXPECT_EQ(valid.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(valid.status().message());
  }

  const ByteTokenizer tokenizer_;
  const std::unique_ptr<chat::ChatTemplate> chat_;
  const Validator validator_{
      {.name = "bytes", .tokenizer = &tokenizer_, .chat = chat_.get(), .temperature = 0.7f},
      [] { return uint64_t{42}; }};
};

TEST_F(ValidatorTest, FillsInEveryDefault) {
  const ValidRequest valid = Valid(R"(text: "hi")");
  EXPECT_THAT(valid.prompt_ids(), ElementsAre(ByteTokenizer::kBegin, 'h', 'i'));
  const engine::SamplingParams& sampling = valid.sampling();
  EXPECT_EQ(sampling.max_tokens, 97);
  EXPECT_EQ(sampling.min_tokens, 0);
  EXPECT_EQ(sampling.temperature, 0.7f) << "the model's own";
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.top_p, 1.0f);
  EXPECT_EQ(sampling.min_p, 0.0f);
  EXPECT_EQ(sampling.seed, 42u) << "drawn";
  EXPECT_EQ(sampling.repetition_penalty, 1.0f);
  EXPECT_EQ(sampling.frequency_penalty, 0.0f);
  EXPECT_EQ(sampling.presence_penalty, 0.0f);
  EXPECT_THAT(sampling.logit_bias, IsEmpty());
  EXPECT_THAT(sampling.end_ids, ElementsAre(ByteTokenizer::kEnd, ByteTokenizer::kMessageEnd));
  EXPECT_FALSE(sampling.want_logprobs);
  EXPECT_EQ(valid.choices(), 1);
  EXPECT_FALSE(valid.echo());
  EXPECT_THAT(valid.stop_strings(), IsEmpty());
  EXPECT_EQ(valid.label(), "");
}

TEST_F(ValidatorTest, TakesEveryFieldAtItsWord) {
  const ValidRequest valid = Valid(R"(
      model: "bytes" text: "hi" request_id: "mine"
      sampling { max_tokens: 9 min_tokens: 3 temperature: 0 top_k: 5 top_p: 0.5 min_p: 0.25 seed: 0
                 repetition_penalty: 1.5 frequency_penalty: -2 presence_penalty: 2
                 logit_bias { key: 9 value: 100 } logit_bias { key: 3 value: -100 } n: 16 }
      stopping { strings: "a" strings: "bc" token_ids: 259 token_ids: 7 token_ids: 7
                 ignore_eos: true }
      output { logprobs: 0 })",
                                   {400, {}});
  const engine::SamplingParams& sampling = valid.sampling();
  EXPECT_EQ(sampling.max_tokens, 9);
  EXPECT_EQ(sampling.min_tokens, 3);
  EXPECT_EQ(sampling.temperature, 0.0f);
  EXPECT_EQ(sampling.top_k, 5);
  EXPECT_EQ(sampling.top_p, 0.5f);
  EXPECT_EQ(sampling.min_p, 0.25f);
  EXPECT_EQ(sampling.seed, 0u);
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.frequency_penalty, -2.0f);
  EXPECT_EQ(sampling.presence_penalty, 2.0f);
  EXPECT_THAT(sampling.logit_bias, ElementsAre(Pair(3, -100.0f), Pair(9, 100.0f)));
  EXPECT_THAT(sampling.end_ids, ElementsAre(7, 259));
  EXPECT_TRUE(sampling.want_logprobs);
  EXPECT_EQ(sampling.top_logprobs, 0);
  EXPECT_EQ(valid.choices(), 16);
  EXPECT_THAT(valid.stop_strings(), ElementsAre("a", "bc"));
  EXPECT_EQ(valid.label(), "mine");
}

TEST_F(ValidatorTest, NamesFieldValueAndLimit) {
  const std::pair<const char*, const char*> cases[] = {
      {"temperature: nan", "sampling.temperature is nan; it must be in [0, 100]"},
      {"temperature: inf", "sampling.temperature is inf; it must be in [0, 100]"},
      {"temperature: -1", "sampling.temperature is -1; it must be in [0, 100]"},
      {"temperature: 100.5", "sampling.temperature is 100.5; it must be in [0, 100]"},
      {"top_k: 2147483648", "sampling.top_k is 2147483648; it must be in [0, 2147483647]"},
      {"top_p: 0", "sampling.top_p is 0; it must be in (0, 1]"},
      {"top_p: 2", "sampling.top_p is 2; it must be in (0, 1]"},
      {"top_p: nan", "sampling.top_p is nan; it must be in (0, 1]"},
      {"min_p: -0.5", "sampling.min_p is -0.5; it must be in [0, 1]"},
      {"min_p: nan", "sampling.min_p is nan; it must be in [0, 1]"},
      {"repetition_penalty: 0", "sampling.repetition_penalty is 0; it must be in [0.01, 100]"},
      {"repetition_penalty: inf", "sampling.repetition_penalty is inf; it must be in [0.01, 100]"},
      {"frequency_penalty: 2.5", "sampling.frequency_penalty is 2.5; it must be in [-2, 2]"},
      {"presence_penalty: -inf", "sampling.presence_penalty is -inf; it must be in [-2, 2]"},
      {"n: 0", "sampling.n is 0; it must be in [1, 16]"},
      {"n: 1000000000", "sampling.n is 1000000000; it must be in [1, 16]"},
      {"max_tokens: 0", "sampling.max_tokens is 0; it must be at least 1"},
      {"max_tokens: 4 min_tokens: 5", "sampling.min_tokens is 5; it must be at most max_tokens, 4"},
      {"min_tokens: 4294967295", "sampling.min_tokens is 4294967295"},
      {"logit_bias { key: 260 value: 1 }",
       "sampling.logit_bias holds 260; the vocabulary's ids are in [0, 260)"},
      {"logit_bias { key: 4294967295 value: 1 }", "sampling.logit_bias holds 4294967295"},
      {"logit_bias { key: 5 value: nan }",
       "sampling.logit_bias[5] is nan; it must be in [-100, 100]"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_THAT(Refused(absl::StrCat("text: 'hi' sampling { ", fields, " }")), HasSubstr(message));
  }
}

TEST_F(ValidatorTest, NamesWhatIsWrongOutsideSampling) {
  const std::string long_text(300, 'x');
  const std::pair<std::string, const char*> cases[] = {
      {"", "one of text, token_ids and chat must be set"},
      {"text: 'a' stopping { strings: '' }", "stopping.strings holds an empty string"},
      {"text: 'a' stopping { strings: '" + long_text + "' }",
       "stopping.strings has 300 bytes; at most 256 are allowed"},
      {"text: 'a' stopping { token_ids: 260 }", "stopping.token_ids holds 260"},
      {"text: 'a' output { logprobs: 21 }", "output.logprobs is 21; it must be in [0, 20]"},
      {"text: 'a' output { logprobs: 0 echo: true }",
       "output.echo with output.logprobs is not supported"},
      {"text: 'a' request_id: '" + long_text + "'",
       "request_id has 300 bytes; at most 128 are allowed"},
      {"text: 'a' request_id: 'a\\nforged log line'", "free of control characters"},
      {"token_ids { ids: 1 ids: 260 }", "token_ids.ids holds 260"},
      {"token_ids { ids: 4294967295 }", "token_ids.ids holds 4294967295"},
      {"chat { }", "chat.messages is empty"},
      {"chat { messages { content: 'a' } }",
       "chat.messages[0].role is \"\"; it must be system, user, assistant or tool"},
      {"chat { messages { role: 'user' } messages { role: 'robot' } }",
       "chat.messages[1].role is \"robot\"; it must be system, user, assistant or tool"},
  };
  for (const auto& [request, message] : cases) {
    EXPECT_THAT(Refused(request), HasSubstr(message));
  }
}

TEST_F(ValidatorTest, CapsTheNumberOfEntries) {
  v1::GenerateRequest request;
  request.set_text("a");
  for (int i = 0; i < 17; ++i) request.mutable_stopping()->add_strings("s");
  EXPECT_THAT(Refused(request.DebugString()),
              HasSubstr("stopping.strings has 17 entries; at most 16 are allowed"));
  request.clear_stopping();
  for (int i = 0; i < 65; ++i) request.mutable_stopping()->add_token_ids(1);
  EXPECT_THAT(Refused(request.DebugString()),
              HasSubstr("stopping.token_ids has 65 entries; at most 64 are allowed"));
  request.clear_stopping();
  for (uint32_t i = 0; i < 1025; ++i) (*request.mutable_sampling()->mutable_logit_bias())[i] = 1;
  EXPECT_THAT(Refused(request.DebugString()),
              HasSubstr("sampling.logit_bias has 1025 entries; at most 1024 are allowed"));
}

TEST_F(ValidatorTest, AnUnknownModelIsNotFound) {
  const auto valid = Validate("model: 'other' text: 'hi'");
  EXPECT_EQ(valid.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(valid.status().message()), HasSubstr("\"other\" is not served"));
  const auto huge = Validate("model: '" + std::string(100'000, 'x') + "' text: 'hi'");
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kNotFound);
  EXPECT_LT(huge.status().message().size(), 200u);
}

TEST_F(ValidatorTest, APromptOverTheLimitIsToldBothNumbers) {
  auto prompt = [](size_t tokens) {
    return "text: '" + std::string(tokens - 1, 'x') + "'";  // and the begin token
  };
  EXPECT_EQ(Valid(prompt(99)).sampling().max_tokens, 1);
  EXPECT_EQ(Refused(prompt(100)),
            "the prompt has 100 tokens; with 1 of answer it must fit 100 (the model's context is "
            "100)");
  EXPECT_THAT(Refused(prompt(101)), HasSubstr("the prompt has 101 tokens"));
  EXPECT_EQ(Refused(prompt(60), {100, 50}),
            "the prompt has 60 tokens; with 1 of answer it must fit 50 (the model's context is "
            "100, a decode worker's pool 50)");
}

TEST_F(ValidatorTest, AGiantTextIsRefusedBeforeItIsTokenised) {
  // The longest token, <|im_start|>, has 12 bytes.
  EXPECT_EQ(Refused("text: '" + std::string(1'200'012, '^') + "'", {100'000, {}}),
            "the prompt has at least 100001 tokens; it must fit 100000");
}

TEST_F(ValidatorTest, MaxTokensMustFitContextAndPoolAndAbsentIsTheRest) {
  const std::string ten = "text: '123456789' ";
  EXPECT_EQ(Valid(ten + "sampling { max_tokens: 90 }").sampling().max_tokens, 90);
  EXPECT_EQ(Refused(ten + "sampling { max_tokens: 91 }"),
            "sampling.max_tokens is 91; behind a prompt of 10 tokens at most 90 fit (the model's "
            "context is 100)");
  EXPECT_EQ(Valid(ten, {100, 64}).sampling().max_tokens, 54);
  EXPECT_EQ(Valid(ten + "sampling { n: 4 }", {100, 64}).sampling().max_tokens, 54)
      << "of each choice: those that do not fit together take turns";
  EXPECT_EQ(Refused(ten + "sampling { max_tokens: 55 }", {100, 64}),
            "sampling.max_tokens is 55; behind a prompt of 10 tokens at most 54 fit (the model's "
            "context is 100, a decode worker's pool 64)");
  EXPECT_THAT(Refused(ten + "sampling { max_tokens: 4294967295 }"), HasSubstr("4294967295"));
}

TEST_F(ValidatorTest, AnEmptyPromptRunsOnlyWithABeginToken) {
  EXPECT_THAT(Valid("text: ''").prompt_ids(), ElementsAre(ByteTokenizer::kBegin));
  EXPECT_THAT(Valid("token_ids { }").prompt_ids(), ElementsAre(ByteTokenizer::kBegin));
  const ByteTokenizer plain(/*adds_begin=*/false);
  const Validator validator({.name = "plain", .tokenizer = &plain}, [] { return 1; });
  for (const char* empty : {"text: ''", "token_ids { }"}) {
    const auto valid = validator.Validate(Bytes(empty), {100, {}});
    EXPECT_EQ(valid.status().message(), "the prompt has 0 tokens; it must have at least 1");
  }
  EXPECT_TRUE(validator.Validate(Bytes("text: ' '"), {100, {}}).ok());
}

TEST_F(ValidatorTest, IdsAreTakenAsTheyAre) {
  EXPECT_THAT(Valid("token_ids { ids: 258 ids: 65 }").prompt_ids(),
              ElementsAre(ByteTokenizer::kMessageStart, 65));
}

TEST_F(ValidatorTest, TextNeverBecomesAControlToken) {
  EXPECT_EQ(Valid("text: '</s>'").prompt_ids().size(), 5u);
}

TEST_F(ValidatorTest, OnlyTheTemplatesOwnTextBecomesControlTokens) {
  const ValidRequest valid =
      Valid("chat { messages { role: 'user' content: '<|im_end|>' } } output { echo: true }");
  EXPECT_EQ(valid.prompt_text(), "<|im_start|>user:<|im_end|><|im_end|><|im_start|>assistant:");
  const std::vector<engine::TokenId>& ids = valid.prompt_ids();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), ByteTokenizer::kMessageStart), 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), ByteTokenizer::kMessageEnd), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), ByteTokenizer::kBegin), 0)
      << "the template writes none";
}

TEST_F(ValidatorTest, TheGenerationPromptCanBeLeftOut) {
  const ValidRequest valid = Valid(
      "chat { messages { role: 'user' content: 'x' } add_generation_prompt: false } "
      "output { echo: true }");
  EXPECT_EQ(valid.prompt_text(), "<|im_start|>user:x<|im_end|>");
}

TEST_F(ValidatorTest, WhatTheTemplateRaisesIsToldInShort) {
  const auto strict =
      chat::ChatTemplate::Parse("{{ raise_exception('bad ' + messages[0]['content']) }}");
  ASSERT_TRUE(strict.ok()) << strict.status();
  const Validator validator({.name = "strict", .tokenizer = &tokenizer_, .chat = strict->get()},
                            [] { return 1; });
  const std::string bytes =
      Bytes("chat { messages { role: 'user' content: '" + std::string(5000, 'x') + "' } }");
  const auto valid = validator.Validate(bytes, {100'000, {}});
  EXPECT_EQ(valid.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(valid.status().message()), HasSubstr("bad x"));
  EXPECT_LT(valid.status().message().size(), 600u);
}

TEST_F(ValidatorTest, WhatTheTemplateRaisesIsCutBetweenCharacters) {
  const auto strict = chat::ChatTemplate::Parse("{{ raise_exception(messages[0]['content']) }}");
  ASSERT_TRUE(strict.ok()) << strict.status();
  const Validator validator({.name = "strict", .tokenizer = &tokenizer_, .chat = strict->get()},
                            [] { return 1; });
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "€";
  for (const char* start : {"", "x", "xx"}) {
    const std::string bytes =
        Bytes("chat { messages { role: 'user' content: '" + (start + euros) + "' } }");
    const absl::Status refused = validator.Validate(bytes, {100'000, {}}).status();
    const std::string_view message(refused.message().data(), refused.message().size());
    EXPECT_THAT(std::string(message), HasSubstr("€"));
    EXPECT_EQ(ValidUtf8Prefix(message), message.size()) << "a status is UTF-8";
  }
}

TEST_F(ValidatorTest, WhatTheVocabularyLacksIsToldWithTheField) {
  EXPECT_EQ(Refused("text: 'a\\013'"), "text: byte 0x0B is missing");
  EXPECT_EQ(Refused("chat { messages { role: 'user' content: 'a\\013' } }"),
            "chat: byte 0x0B is missing");
}

TEST_F(ValidatorTest, ChatWithoutATemplateIsRefusedByName) {
  const Validator validator({.name = "base", .tokenizer = &tokenizer_}, [] { return 1; });
  const auto valid =
      validator.Validate(Bytes("chat { messages { role: 'user' content: 'x' } }"), {100, {}});
  EXPECT_EQ(valid.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(valid.status().message()),
              HasSubstr("model \"base\" has no chat template"));
}

TEST_F(ValidatorTest, EchoKeepsThePromptsText) {
  EXPECT_EQ(Valid("text: 'h\u00e9' output { echo: true }").prompt_text(), "h\u00e9");
  EXPECT_EQ(Valid("token_ids { ids: 72 ids: 255 } output { echo: true }").prompt_text(), "H\uFFFD");
}

TEST_F(ValidatorTest, BytesThatAreNoMessageAreRefused) {
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    std::mt19937 random(seed);
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const auto valid = validator_.Validate(bytes, {100, {}});
    EXPECT_TRUE(!valid.ok() || !valid->prompt_ids().empty()) << "seed " << seed;
  }
  const std::string unknown = Bytes("text: 'hi'") + "\x98\x06\x01";
  const auto valid = validator_.Validate(unknown, {100, {}});
  EXPECT_THAT(std::string(valid.status().message()), HasSubstr("#99 is not a field"));
}

TEST_F(ValidatorTest, TokenizeTakesTextWithItsOptions) {
  auto input = validator_.ValidateTokenize(Bytes<v1::TokenizeRequest>("text: 'x'"));
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->text, "x");
  EXPECT_TRUE(input->options.add_special);
  EXPECT_FALSE(input->options.parse_special);
  input = validator_.ValidateTokenize(
      Bytes<v1::TokenizeRequest>("add_special: false parse_special: true"));
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_FALSE(input->options.add_special);
  EXPECT_TRUE(input->options.parse_special);
  EXPECT_EQ(validator_.ValidateTokenize(Bytes<v1::TokenizeRequest>("model: 'y'")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ValidatorTest, DetokenizeTakesIdsOfTheVocabulary) {
  const auto ids = validator_.ValidateDetokenize(Bytes<v1::DetokenizeRequest>("token_ids: 259"));
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_THAT(*ids, ElementsAre(259));
  EXPECT_THAT(
      std::string(validator_.ValidateDetokenize(Bytes<v1::DetokenizeRequest>("token_ids: 260"))
                      .status()
                      .message()),
      HasSubstr("token_ids holds 260"));
}

// Both ways: the answer must fit a client's 4 MiB, and must not be many times what was sent.
TEST_F(ValidatorTest, TokenizeAndDetokenizeTakeAMebibyteOfText) {
  constexpr size_t kMost = 1 << 20;
  v1::TokenizeRequest tokenize;
  tokenize.set_text(std::string(kMost, 'x'));
  EXPECT_TRUE(validator_.ValidateTokenize(tokenize.SerializeAsString()).ok());
  tokenize.set_text(std::string(kMost + 1, 'x'));
  EXPECT_EQ(validator_.ValidateTokenize(tokenize.SerializeAsString()).status(),
            absl::InvalidArgumentError("text has 1048577 bytes; at most 1048576 are allowed"));

  const ByteTokenizer tokenizer(/*adds_begin=*/true, {std::string(1 << 10, ' ')});
  const Validator validator({.name = "long", .tokenizer = &tokenizer}, [] { return 1; });
  const auto long_token = static_cast<uint32_t>(tokenizer.vocabulary() - 1);
  v1::DetokenizeRequest detokenize;
  for (size_t i = 0; i < kMost >> 10; ++i) detokenize.add_token_ids(long_token);
  detokenize.add_token_ids(ByteTokenizer::kEnd);  // no text
  EXPECT_TRUE(validator.ValidateDetokenize(detokenize.SerializeAsString()).ok());
  detokenize.add_token_ids('x');
  EXPECT_EQ(validator.ValidateDetokenize(detokenize.SerializeAsString()).status(),
            absl::InvalidArgumentError("token_ids stand for 1048577 bytes of text; at most 1048576 "
                                       "are allowed; send them in parts"));
}

TEST_F(ValidatorTest, ListModelsTakesNoField) {
  EXPECT_TRUE(validator_.ValidateListModels("").ok());
  EXPECT_EQ(validator_.ValidateListModels("\x08\x01").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace setu::router
