// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/prefill_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace setu::prefill {
namespace {

using ::testing::HasSubstr;

constexpr PromptLimits kLimits = {.vocabulary = 50, .tokens = 40, .block_tokens = 16};

worker::v1::PrefillRequest Example() {
  wire::Sequence sequence;
  sequence.uuid = "u";
  sequence.ids.assign(33, 7);
  sequence.prompt_length = 30;
  sequence.choices = {4};
  worker::v1::PrefillRequest request;
  *request.mutable_sequence() = wire::ToProto(sequence);
  request.set_attempt(2);
  request.set_decode_address("decode-0:50053");
  request.set_blocks_held(1);
  request.set_resumed(true);
  return request;
}

TEST(PrefillServiceTest, ReadsAPrompt) {
  auto prompt = ReadPrompt(Example(), kLimits);
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->sequence.ids.size(), 33u);
  EXPECT_EQ(prompt->attempt, 2u);
  EXPECT_EQ(prompt->decode_address, "decode-0:50053");
  EXPECT_EQ(prompt->blocks_held, 1);
  EXPECT_TRUE(prompt->resumed);
  EXPECT_EQ(prompt->reply, nullptr);
}

TEST(PrefillServiceTest, RefusesWhatDoesNotFitWithBothNumbers) {
  using Request = worker::v1::PrefillRequest;
  struct Case {
    const char* text;
    std::function<void(Request&)> breaks;
  };
  const std::vector<Case> cases = {
      {"prompt has 41 tokens, this worker takes at most 40",
       [](Request& r) { r.mutable_sequence()->mutable_ids()->Resize(41, 1); }},
      {"decode_address has 0 bytes", [](Request& r) { r.clear_decode_address(); }},
      {"decode_address has 257 bytes",
       [](Request& r) { r.set_decode_address(std::string(257, 'a')); }},
      {"blocks_held is 4, the prompt has 3 blocks", [](Request& r) { r.set_blocks_held(4); }},
      {"sequence.ids is 50", [](Request& r) { r.mutable_sequence()->set_ids(0, 50); }},
      {"sequence.uuid", [](Request& r) { r.clear_sequence(); }},
  };
  for (const Case& c : cases) {
    Request request = Example();
    c.breaks(request);
    const absl::Status status = ReadPrompt(request, kLimits).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
}

}  // namespace
}  // namespace setu::prefill
