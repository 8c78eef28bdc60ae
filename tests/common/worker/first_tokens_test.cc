// SPDX-License-Identifier: Apache-2.0
#include "common/worker/first_tokens.h"

#include <gtest/gtest.h>

namespace setu::worker {
namespace {

constexpr int32_t kVocabulary = 50;

wire::Sequence Sequence(std::vector<uint32_t> choices) {
  wire::Sequence sequence;
  sequence.ids = {3, 1, 4, 1, 5};
  sequence.prompt_length = 5;
  sequence.sampling.temperature = 2.0f;
  sequence.sampling.seed = 7;
  sequence.sampling.max_tokens = 10;
  sequence.choices = std::move(choices);
  return sequence;
}

TEST(FirstTokens, EachChoiceDrawsItsOwnAndHearsOfItsEnd) {
  engine::Sampler sampler(kVocabulary);
  std::vector<float> logits(kVocabulary);
  for (int32_t i = 0; i < kVocabulary; ++i) logits[i] = static_cast<float>(i % 7);
  wire::Sequence sequence = Sequence({0, 2, 5, 9});
  const auto first = SampleFirstTokens(sampler, logits, sequence);
  ASSERT_EQ(first.size(), 4u);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].choice, sequence.choices[i]);
    EXPECT_EQ(first[i].token,
              sampler.Sample(logits, sequence.sampling, {sequence.ids, sequence.prompt_length},
                             sequence.choices[i]));
    EXPECT_EQ(first[i].end, engine::EndReason::kNone);
  }
  sequence.sampling.end_ids = {first[1].token.id};
  EXPECT_EQ(SampleFirstTokens(sampler, logits, sequence)[1].end, engine::EndReason::kEndId);
  sequence.sampling.end_ids.clear();
  sequence.sampling.max_tokens = 1;
  EXPECT_EQ(SampleFirstTokens(sampler, logits, sequence)[0].end, engine::EndReason::kMaxTokens);
}

TEST(FirstTokens, OfAResumedSequenceCountWhatWasGenerated) {
  engine::Sampler sampler(kVocabulary);
  const std::vector<float> logits(kVocabulary, 1.0f);
  wire::Sequence sequence = Sequence({1});
  sequence.prompt_length = 2;
  sequence.sampling.max_tokens = 4;
  EXPECT_EQ(SampleFirstTokens(sampler, logits, sequence)[0].end, engine::EndReason::kMaxTokens)
      << "three of four were generated before";
}

}  // namespace
}  // namespace setu::worker
