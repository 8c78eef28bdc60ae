// SPDX-License-Identifier: Apache-2.0
// A sequence or a token that a peer sends is refused by field, or is within every limit and the
// same after the way out and in again. The first byte names the message.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "common/base/check.h"
#include "common/wire/convert.h"
#include "setu/worker/v1/prefill.pb.h"
#include "setu/worker/v1/worker.pb.h"
#include "tests/fuzz/input.h"

namespace setu::wire {
namespace {

constexpr int32_t kVocabulary = 100;

void CheckStatus(const absl::Status& status) {
  SETU_CHECK(status.code() == absl::StatusCode::kInvalidArgument, "a peer's fault is named so");
  SETU_CHECK(status.message().find(" is ") != absl::string_view::npos,
             "an error names its field and value");
}

bool IsId(int32_t id) { return id >= 0 && id < kVocabulary; }

auto Fields(const engine::SamplingParams& p) {
  return std::tie(p.max_tokens, p.min_tokens, p.temperature, p.top_k, p.top_p, p.min_p, p.seed,
                  p.repetition_penalty, p.frequency_penalty, p.presence_penalty, p.logit_bias,
                  p.end_ids, p.want_logprobs, p.top_logprobs);
}

void CheckSampling(const engine::SamplingParams& p) {
  SETU_CHECK(p.max_tokens >= 1 && p.min_tokens >= 0 && p.top_k >= 0 && p.top_logprobs >= 0,
             "counts are none below 0");
  for (float value : {p.temperature, p.top_p, p.min_p, p.repetition_penalty, p.frequency_penalty,
                      p.presence_penalty}) {
    SETU_CHECK(std::isfinite(value), "numbers are finite");
  }
  SETU_CHECK(std::ranges::all_of(p.end_ids, IsId), "ends are ids");
  for (const auto& [id, bias] : p.logit_bias) {
    SETU_CHECK(IsId(id) && std::isfinite(bias), "a bias is of an id");
  }
}

void CheckSequence(std::string_view bytes) {
  worker::v1::SequenceState state;
  if (!state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto sequence = FromProto(state, kVocabulary);
  if (!sequence.ok()) return CheckStatus(sequence.status());
  const Sequence& s = *sequence;
  CheckSampling(s.sampling);
  SETU_CHECK(std::ranges::all_of(s.ids, IsId), "ids are of the vocabulary");
  SETU_CHECK(s.prompt_length >= 1 && std::cmp_less_equal(s.prompt_length, s.ids.size()),
             "a prompt is inside the ids");
  SETU_CHECK(std::cmp_less(s.ids.size() - s.prompt_length, s.sampling.max_tokens),
             "a sequence has tokens left to make");
  SETU_CHECK(!s.choices.empty() && s.choices.size() <= kMaxChoices, "choices are few");
  const auto again = FromProto(ToProto(s), kVocabulary);
  SETU_CHECK(again.ok(), "what was taken is taken again");
  SETU_CHECK(again->uuid == s.uuid && again->ids == s.ids && again->choices == s.choices &&
                 again->prompt_length == s.prompt_length && again->cache_salt == s.cache_salt &&
                 Fields(again->sampling) == Fields(s.sampling),
             "a sequence is the same after the way out and in");
}

void CheckFirstToken(std::string_view bytes) {
  worker::v1::FirstToken message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto first = FromProto(message, kVocabulary);
  if (!first.ok()) return CheckStatus(first.status());
  SETU_CHECK(IsId(first->token.id), "a token is an id");
  for (const engine::TopToken& top : first->token.top) SETU_CHECK(IsId(top.id), "a top is an id");
  const worker::v1::FirstToken out = ToProto(*first);
  const auto again = FromProto(out, kVocabulary);
  SETU_CHECK(again.ok() && ToProto(*again).SerializeAsString() == out.SerializeAsString(),
             "a token is the same after the way out and in");
}

}  // namespace
}  // namespace setu::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer no_lines;
  setu::fuzz::Input input(data, size);
  if (input.Below(2) == 0) {
    setu::wire::CheckSequence(input.Rest());
  } else {
    setu::wire::CheckFirstToken(input.Rest());
  }
  return 0;
}
