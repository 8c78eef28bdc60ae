// SPDX-License-Identifier: Apache-2.0
#include "services/router/sampling_fields.h"

#include <algorithm>
#include <limits>

#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "services/router/field_check.h"

namespace setu::router {
namespace {

constexpr uint32_t kMaxChoices = 16;
constexpr uint32_t kMaxLogprobs = 20;
constexpr size_t kMaxLogitBias = 1024;
constexpr size_t kMaxStopStrings = 16;
constexpr size_t kMaxStopStringBytes = 256;
constexpr size_t kMaxStopIds = 64;
constexpr uint32_t kMaxCount = std::numeric_limits<int32_t>::max();

// Absent is not 0: the field's default stands in `params` already.
absl::Status ReadFloat(absl::string_view field, bool present, float value, float lowest,
                       float highest, float& target) {
  if (!present) return absl::OkStatus();
  target = value;
  return CheckRange(field, value, lowest, highest);
}

absl::Status ReadDraw(const v1::Sampling& s, engine::SamplingParams& params) {
  SETU_RETURN_IF_ERROR(ReadFloat("sampling.temperature", s.has_temperature(), s.temperature(), 0.0f,
                                 kMaxTemperature, params.temperature));
  SETU_RETURN_IF_ERROR(CheckRange("sampling.top_k", s.top_k(), 0u, kMaxCount));
  params.top_k = static_cast<int32_t>(s.top_k());
  if (s.has_top_p()) params.top_p = s.top_p();
  if (!(params.top_p > 0.0f && params.top_p <= 1.0f)) {
    return Refuse("sampling.top_p", params.top_p, "in (0, 1]");
  }
  return ReadFloat("sampling.min_p", s.has_min_p(), s.min_p(), 0.0f, 1.0f, params.min_p);
}

absl::Status ReadPenalties(const v1::Sampling& s, engine::SamplingParams& params) {
  SETU_RETURN_IF_ERROR(ReadFloat("sampling.repetition_penalty", s.has_repetition_penalty(),
                                 s.repetition_penalty(), 0.01f, 100.0f, params.repetition_penalty));
  SETU_RETURN_IF_ERROR(ReadFloat("sampling.frequency_penalty", s.has_frequency_penalty(),
                                 s.frequency_penalty(), -2.0f, 2.0f, params.frequency_penalty));
  return ReadFloat("sampling.presence_penalty", s.has_presence_penalty(), s.presence_penalty(),
                   -2.0f, 2.0f, params.presence_penalty);
}

absl::Status ReadLogitBias(const v1::Sampling& s, int32_t vocabulary,
                           engine::SamplingParams& params) {
  SETU_RETURN_IF_ERROR(CheckCount("sampling.logit_bias", s.logit_bias().size(), kMaxLogitBias));
  for (const auto& [id, bias] : s.logit_bias()) {
    SETU_RETURN_IF_ERROR(CheckId("sampling.logit_bias", id, vocabulary));
    SETU_RETURN_IF_ERROR(
        CheckRange(absl::StrCat("sampling.logit_bias[", id, "]"), bias, -100.0f, 100.0f));
    params.logit_bias.emplace_back(static_cast<engine::TokenId>(id), bias);
  }
  std::sort(params.logit_bias.begin(), params.logit_bias.end());
  return absl::OkStatus();
}

absl::Status ReadEndIds(const v1::Stopping& stopping, const tokenizer::Tokenizer& tokenizer,
                        engine::SamplingParams& params) {
  SETU_RETURN_IF_ERROR(CheckCount("stopping.token_ids", stopping.token_ids_size(), kMaxStopIds));
  if (!stopping.ignore_eos()) params.end_ids = tokenizer.end_ids();
  for (uint32_t id : stopping.token_ids()) {
    SETU_RETURN_IF_ERROR(CheckId("stopping.token_ids", id, tokenizer.vocabulary()));
    params.end_ids.push_back(static_cast<engine::TokenId>(id));
  }
  std::sort(params.end_ids.begin(), params.end_ids.end());
  const auto repeated = std::unique(params.end_ids.begin(), params.end_ids.end());
  params.end_ids.erase(repeated, params.end_ids.end());
  return absl::OkStatus();
}

absl::Status ReadOutput(const v1::Output& output, engine::SamplingParams& params) {
  SETU_RETURN_IF_ERROR(CheckRange("output.logprobs", output.logprobs(), 0u, kMaxLogprobs));
  params.want_logprobs = output.has_logprobs();
  params.top_logprobs = static_cast<int32_t>(output.logprobs());
  if (output.echo() && params.want_logprobs) {
    return absl::InvalidArgumentError(
        "output.echo with output.logprobs is not supported: the prompt's logprobs are not "
        "computed; ask for one of them");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<engine::SamplingParams> ReadSampling(const v1::GenerateRequest& request,
                                                    const tokenizer::Tokenizer& tokenizer,
                                                    float default_temperature) {
  const v1::Sampling& sampling = request.sampling();
  engine::SamplingParams params;
  params.temperature = default_temperature;
  SETU_RETURN_IF_ERROR(ReadDraw(sampling, params));
  SETU_RETURN_IF_ERROR(ReadPenalties(sampling, params));
  SETU_RETURN_IF_ERROR(ReadLogitBias(sampling, tokenizer.vocabulary(), params));
  SETU_RETURN_IF_ERROR(ReadEndIds(request.stopping(), tokenizer, params));
  SETU_RETURN_IF_ERROR(ReadOutput(request.output(), params));
  SETU_RETURN_IF_ERROR(CheckRange("sampling.min_tokens", sampling.min_tokens(), 0u, kMaxCount));
  params.min_tokens = static_cast<int32_t>(sampling.min_tokens());
  return params;
}

absl::StatusOr<std::vector<std::string>> ReadStopStrings(const v1::Stopping& stopping) {
  SETU_RETURN_IF_ERROR(CheckCount("stopping.strings", stopping.strings_size(), kMaxStopStrings));
  for (const std::string& text : stopping.strings()) {
    if (text.empty()) return absl::InvalidArgumentError("stopping.strings holds an empty string");
    SETU_RETURN_IF_ERROR(CheckLength("stopping.strings", text, kMaxStopStringBytes));
  }
  return std::vector<std::string>(stopping.strings().begin(), stopping.strings().end());
}

absl::StatusOr<int32_t> ReadChoices(const v1::Sampling& sampling) {
  const uint32_t choices = sampling.has_n() ? sampling.n() : 1;
  SETU_RETURN_IF_ERROR(CheckRange("sampling.n", choices, 1u, kMaxChoices));
  return static_cast<int32_t>(choices);
}

}  // namespace setu::router
