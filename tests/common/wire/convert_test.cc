// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace setu::wire {
namespace {

using ::testing::HasSubstr;
constexpr int32_t kVocabulary = 100;

Sequence Example() {
  Sequence sequence;
  sequence.uuid = "0123456789abcdef";
  sequence.ids = {1, 2, 99, 0};
  sequence.prompt_length = 3;
  sequence.choices = {7};
  engine::SamplingParams& sampling = sequence.sampling;
  sampling.max_tokens = 20;
  sampling.min_tokens = 2;
  sampling.temperature = 0.5f;
  sampling.top_k = 40;
  sampling.top_p = 0.9f;
  sampling.min_p = 0.1f;
  sampling.seed = 0xfedcba9876543210;
  sampling.repetition_penalty = 1.1f;
  sampling.frequency_penalty = -0.25f;
  sampling.presence_penalty = 0.75f;
  sampling.logit_bias = {{3, -100.0f}, {50, 2.5f}};
  sampling.end_ids = {0, 99};
  sampling.want_logprobs = true;
  sampling.top_logprobs = 5;
  return sequence;
}

TEST(ConvertTest, ASequenceComesBackAsItWent) {
  const Sequence sent = Example();
  auto got = FromProto(ToProto(sent), kVocabulary);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->uuid, sent.uuid);
  EXPECT_EQ(got->ids, sent.ids);
  EXPECT_EQ(got->prompt_length, sent.prompt_length);
  EXPECT_EQ(got->choices, sent.choices);
  EXPECT_EQ(got->sampling.max_tokens, 20);
  EXPECT_EQ(got->sampling.min_tokens, 2);
  EXPECT_EQ(got->sampling.temperature, 0.5f);
  EXPECT_EQ(got->sampling.top_k, 40);
  EXPECT_EQ(got->sampling.top_p, 0.9f);
  EXPECT_EQ(got->sampling.min_p, 0.1f);
  EXPECT_EQ(got->sampling.seed, sent.sampling.seed);
  EXPECT_EQ(got->sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(got->sampling.frequency_penalty, -0.25f);
  EXPECT_EQ(got->sampling.presence_penalty, 0.75f);
  EXPECT_EQ(got->sampling.logit_bias, sent.sampling.logit_bias);
  EXPECT_EQ(got->sampling.end_ids, sent.sampling.end_ids);
  EXPECT_TRUE(got->sampling.want_logprobs);
  EXPECT_EQ(got->sampling.top_logprobs, 5);
}

TEST(ConvertTest, EndIdsAreSortedAndUnique) {
  auto state = ToProto(Example());
  state.mutable_sampling()->clear_end_ids();
  for (uint32_t id : {9, 3, 9, 1}) state.mutable_sampling()->add_end_ids(id);
  EXPECT_THAT(FromProto(state, kVocabulary)->sampling.end_ids, ::testing::ElementsAre(1, 3, 9));
}

struct Broken {
  const char* field;
  std::function<void(worker::v1::SequenceState&)> breaks;
};

TEST(ConvertTest, RefusesWhatIsWrongByName) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  using State = worker::v1::SequenceState;
  const std::vector<Broken> cases = {
      {"uuid", [](State& s) { s.clear_uuid(); }},
      {"uuid", [](State& s) { s.set_uuid(std::string(65, 'a')); }},
      {"ids", [](State& s) { s.clear_ids(); }},
      {"sequence.ids is 100", [](State& s) { s.set_ids(0, kVocabulary); }},
      {"4294967295", [](State& s) { s.set_ids(0, 0xffffffff); }},
      {"prompt_length", [](State& s) { s.set_prompt_length(0); }},
      {"prompt_length is 5", [](State& s) { s.set_prompt_length(5); }},
      {"choices", [](State& s) { s.clear_choices(); }},
      {"choices.size is 2", [](State& s) { s.add_choices(1); }},  // ids follow the prompt
      {"choices is 7", [](State& s) { s.set_prompt_length(4), s.add_choices(7); }},
      {"choices.size is 17",
       [](State& s) {
         s.set_prompt_length(4);
         for (int i = 0; i < 16; ++i) s.add_choices(100 + i);
       }},
      {"max_tokens", [](State& s) { s.mutable_sampling()->set_max_tokens(0); }},
      {"max_tokens", [](State& s) { s.mutable_sampling()->set_max_tokens(0x80000000); }},
      {"max_tokens", [](State& s) { s.mutable_sampling()->set_max_tokens(1); }},  // all generated
      {"min_tokens", [](State& s) { s.mutable_sampling()->set_min_tokens(0xffffffff); }},
      {"temperature", [=](State& s) { s.mutable_sampling()->set_temperature(nan); }},
      {"temperature", [](State& s) { s.mutable_sampling()->set_temperature(-1); }},
      {"top_k", [](State& s) { s.mutable_sampling()->set_top_k(0x80000000); }},
      {"top_p", [](State& s) { s.mutable_sampling()->set_top_p(1.5f); }},
      {"min_p", [=](State& s) { s.mutable_sampling()->set_min_p(infinity); }},
      {"repetition", [](State& s) { s.mutable_sampling()->set_repetition_penalty(0); }},
      {"frequency", [=](State& s) { s.mutable_sampling()->set_frequency_penalty(infinity); }},
      {"presence", [=](State& s) { s.mutable_sampling()->set_presence_penalty(nan); }},
      {"end_ids", [](State& s) { s.mutable_sampling()->add_end_ids(kVocabulary); }},
      {"end_ids.size", [](State& s) { s.mutable_sampling()->mutable_end_ids()->Resize(1025, 0); }},
      {"logit_bias", [](State& s) { (*s.mutable_sampling()->mutable_logit_bias())[100] = 0; }},
      {"logit_bias", [=](State& s) { (*s.mutable_sampling()->mutable_logit_bias())[1] = nan; }},
      {"top_logprobs", [](State& s) { s.mutable_sampling()->set_top_logprobs(101); }},
  };
  for (const Broken& broken : cases) {
    auto state = ToProto(Example());
    broken.breaks(state);
    const absl::Status status = FromProto(state, kVocabulary).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << broken.field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(broken.field));
  }
}

TEST(ConvertTest, AFirstTokenComesBackAsItWent) {
  const FirstToken sent{3, {42, -0.5f, {{42, -0.5f}, {7, -1.25f}}}, engine::EndReason::kEndId};
  auto got = FromProto(ToProto(sent), kVocabulary);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->choice, 3u);
  EXPECT_EQ(got->token, sent.token);
  EXPECT_EQ(got->end, engine::EndReason::kEndId);
  EXPECT_FALSE(FromProto(ToProto(sent), 42).ok());  // 42 is no id of 42
}

TEST(ConvertTest, EndReasonsComeBackAsTheyWent) {
  using engine::EndReason;
  for (EndReason reason : {EndReason::kNone, EndReason::kEndId, EndReason::kMaxTokens}) {
    EXPECT_EQ(FromProto(ToProto(reason)), reason);
  }
  EXPECT_EQ(FromProto(static_cast<worker::v1::EndReason>(77)), EndReason::kNone);
}

engine::RunnerFingerprint ExampleFingerprint() {
  return {.model = 0xabc,
          .tokenizer = 0xdef,
          .numerics = "f32/kv-f32/r1",
          .logits_digest = 0x123,
          .layout = {.block_tokens = 16,
                     .layers = 4,
                     .kv_heads = 2,
                     .head_dim = 8,
                     .type = kernels::KvType::kF32}};
}

TEST(ConvertTest, DifferenceNamesTheFirstPartThatDiffers) {
  using engine::RunnerFingerprint;
  const auto ours = ToProto(ExampleFingerprint());
  EXPECT_EQ(Difference(ours, ours, Mixing::kRefused), "");
  const std::vector<std::pair<const char*, std::function<void(RunnerFingerprint&)>>> cases = {
      {"f32/kv-f32/r1 here and int8-g32/kv-f16/r1 there",
       [](RunnerFingerprint& f) { f.numerics = "int8-g32/kv-f16/r1"; }},
      {"model is abc here and 1 there", [](RunnerFingerprint& f) { f.model = 1; }},
      {"tokenizer", [](RunnerFingerprint& f) { f.tokenizer = 1; }},
      {"16 tokens", [](RunnerFingerprint& f) { f.layout.block_tokens = 32; }},
      {"4 layers", [](RunnerFingerprint& f) { f.layout.layers = 5; }},
      {"2 heads", [](RunnerFingerprint& f) { f.layout.kv_heads = 1; }},
      {"8 values", [](RunnerFingerprint& f) { f.layout.head_dim = 4; }},
      {"of 2 bytes", [](RunnerFingerprint& f) { f.layout.type = kernels::KvType::kF16; }},
      {"logits", [](RunnerFingerprint& f) { f.logits_digest = 1; }},
  };
  for (const auto& [text, change] : cases) {
    RunnerFingerprint theirs = ExampleFingerprint();
    change(theirs);
    EXPECT_THAT(Difference(ours, ToProto(theirs), Mixing::kRefused), HasSubstr(text));
  }
}

TEST(ConvertTest, MixingLetsNumericsAndKvTypeDifferAndNothingElse) {
  const auto ours = ToProto(ExampleFingerprint());
  engine::RunnerFingerprint other = ExampleFingerprint();
  other.numerics = "int8-g32/kv-f16/r1";
  other.layout.type = kernels::KvType::kF16;
  other.logits_digest = 1;
  EXPECT_EQ(Difference(ours, ToProto(other), Mixing::kAllowed), "");
  EXPECT_TRUE(SameNumerics(ours, ours));
  EXPECT_FALSE(SameNumerics(ours, ToProto(other)));
  other.layout.block_tokens = 32;
  EXPECT_THAT(Difference(ours, ToProto(other), Mixing::kAllowed), HasSubstr("32 tokens"));
  other.tokenizer = 1;
  EXPECT_THAT(Difference(ours, ToProto(other), Mixing::kAllowed), HasSubstr("tokenizer"));
  other.model = 1;
  EXPECT_THAT(Difference(ours, ToProto(other), Mixing::kAllowed), HasSubstr("model"));
}

TEST(ConvertTest, MixingTakesTheLeaveOfBoth) {
  engine::RunnerFingerprint open = ExampleFingerprint();
  open.allow_mixed_numerics = true;
  const auto strict = ToProto(ExampleFingerprint()), allowing = ToProto(open);
  EXPECT_EQ(MixingOf(allowing, allowing), Mixing::kAllowed);
  EXPECT_EQ(MixingOf(strict, allowing), Mixing::kRefused);
  EXPECT_EQ(MixingOf(allowing, strict), Mixing::kRefused);
}

TEST(ConvertTest, TheNumericPathNamesTheTypeOfTheKv) {
  using kernels::KvType;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    engine::RunnerFingerprint fingerprint = ExampleFingerprint();
    fingerprint.numerics = absl::StrCat("bf16-tile/kv-", kernels::KvTypeName(type), "/r1");
    fingerprint.layout.type = type;
    EXPECT_EQ(*KvTypeOf(ToProto(fingerprint)), type);
  }
  engine::RunnerFingerprint unknown = ExampleFingerprint();
  for (const char* numerics : {"f32/kv-fp8/r1", "f32", "", "f32/kv-f16/r1"}) {
    unknown.numerics = numerics;
    const absl::Status status = KvTypeOf(ToProto(unknown)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("4 bytes"));
  }
}

TEST(ConvertTest, IdsDigestIsFnv1aOverLittleEndianIds) {
  EXPECT_EQ(IdsDigest({}), 0xcbf29ce484222325u);
  const engine::TokenId ids[] = {'a' | 'b' << 8 | 'c' << 16 | 'd' << 24};
  EXPECT_EQ(IdsDigest(ids), 0xfc179f83ee0724ddu);  // of the bytes "abcd"
  const engine::TokenId one[] = {1, 2}, other[] = {2, 1};
  EXPECT_NE(IdsDigest(one), IdsDigest(other));
}

}  // namespace
}  // namespace setu::wire
