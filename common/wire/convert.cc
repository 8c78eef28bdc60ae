// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace setu::wire {
namespace {

constexpr int32_t kMaxInt = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxUuidBytes = 64;

template <typename Value, typename Limit>
absl::Status Refuse(absl::string_view field, Value value, absl::string_view rule, Limit limit) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, ", must be ", rule, limit));
}

absl::Status CheckInt(absl::string_view field, uint32_t value, int32_t lowest, int32_t highest) {
  if (value < static_cast<uint32_t>(lowest)) return Refuse(field, value, "at least ", lowest);
  if (value > static_cast<uint32_t>(highest)) return Refuse(field, value, "at most ", highest);
  return absl::OkStatus();
}

absl::Status CheckId(absl::string_view field, uint32_t id, int32_t vocabulary) {
  return CheckInt(field, id, 0, vocabulary - 1);
}

absl::Status CheckFloat(absl::string_view field, float value, float lowest, float highest) {
  if (!std::isfinite(value)) return Refuse(field, value, "finite", "");
  if (value < lowest) return Refuse(field, value, "at least ", lowest);
  if (value > highest) return Refuse(field, value, "at most ", highest);
  return absl::OkStatus();
}

absl::Status CheckNumbers(const worker::v1::SamplingParams& p, int32_t vocabulary) {
  constexpr float kMax = std::numeric_limits<float>::max();
  SETU_RETURN_IF_ERROR(CheckInt("sampling.max_tokens", p.max_tokens(), 1, kMaxInt));
  SETU_RETURN_IF_ERROR(CheckInt("sampling.min_tokens", p.min_tokens(), 0, kMaxInt));
  SETU_RETURN_IF_ERROR(CheckInt("sampling.top_k", p.top_k(), 0, kMaxInt));
  SETU_RETURN_IF_ERROR(CheckInt("sampling.top_logprobs", p.top_logprobs(), 0, vocabulary));
  SETU_RETURN_IF_ERROR(CheckFloat("sampling.temperature", p.temperature(), 0.0f, kMax));
  SETU_RETURN_IF_ERROR(CheckFloat("sampling.top_p", p.top_p(), 0.0f, 1.0f));
  SETU_RETURN_IF_ERROR(CheckFloat("sampling.min_p", p.min_p(), 0.0f, 1.0f));
  SETU_RETURN_IF_ERROR(CheckFloat("sampling.repetition_penalty", p.repetition_penalty(),
                                  std::numeric_limits<float>::min(), kMax));
  SETU_RETURN_IF_ERROR(
      CheckFloat("sampling.frequency_penalty", p.frequency_penalty(), -kMax, kMax));
  SETU_RETURN_IF_ERROR(CheckFloat("sampling.presence_penalty", p.presence_penalty(), -kMax, kMax));
  SETU_RETURN_IF_ERROR(CheckInt("sampling.end_ids.size", p.end_ids_size(), 0, kMaxEndIds));
  return CheckInt("sampling.logit_bias.size", p.logit_bias_size(), 0, kMaxLogitBias);
}

absl::Status CheckChoices(const worker::v1::SequenceState& state) {
  SETU_RETURN_IF_ERROR(CheckInt("sequence.choices.size", state.choices_size(), 1, kMaxChoices));
  if (state.choices_size() > 1 && static_cast<uint32_t>(state.ids_size()) > state.prompt_length()) {
    return Refuse("sequence.choices.size", state.choices_size(), "1 where ids follow the prompt",
                  "");
  }
  std::vector<uint32_t> choices(state.choices().begin(), state.choices().end());
  std::sort(choices.begin(), choices.end());
  const auto twice = std::adjacent_find(choices.begin(), choices.end());
  if (twice != choices.end()) return Refuse("sequence.choices", *twice, "named once", "");
  return absl::OkStatus();
}

template <typename Value>
std::string Differ(absl::string_view part, const Value& ours, const Value& theirs) {
  return absl::StrCat(part, " is ", ours, " here and ", theirs, " there");
}

std::string LayoutText(const worker::v1::KvLayout& layout) {
  return absl::StrCat("v", layout.version(), " ", layout.block_tokens(), " tokens x ",
                      layout.layers(), " layers x ", layout.kv_heads(), " heads x ",
                      layout.head_dim(), " values");
}

std::string SizedLayoutText(const worker::v1::KvLayout& layout) {
  return absl::StrCat(LayoutText(layout), " of ", layout.value_bytes(), " bytes");
}

}  // namespace

worker::v1::SamplingParams ToProto(const engine::SamplingParams& params) {
  worker::v1::SamplingParams out;
  out.set_max_tokens(params.max_tokens);
  out.set_min_tokens(params.min_tokens);
  out.set_temperature(params.temperature);
  out.set_top_k(params.top_k);
  out.set_top_p(params.top_p);
  out.set_min_p(params.min_p);
  out.set_seed(params.seed);
  out.set_repetition_penalty(params.repetition_penalty);
  out.set_frequency_penalty(params.frequency_penalty);
  out.set_presence_penalty(params.presence_penalty);
  for (const auto& [id, bias] : params.logit_bias) (*out.mutable_logit_bias())[id] = bias;
  out.mutable_end_ids()->Add(params.end_ids.begin(), params.end_ids.end());
  out.set_want_logprobs(params.want_logprobs);
  out.set_top_logprobs(params.top_logprobs);
  return out;
}

absl::StatusOr<engine::SamplingParams> FromProto(const worker::v1::SamplingParams& params,
                                                 int32_t vocabulary) {
  SETU_RETURN_IF_ERROR(CheckNumbers(params, vocabulary));
  engine::SamplingParams out;
  out.max_tokens = static_cast<int32_t>(params.max_tokens());
  out.min_tokens = static_cast<int32_t>(params.min_tokens());
  out.temperature = params.temperature();
  out.top_k = static_cast<int32_t>(params.top_k());
  out.top_p = params.top_p();
  out.min_p = params.min_p();
  out.seed = params.seed();
  out.repetition_penalty = params.repetition_penalty();
  out.frequency_penalty = params.frequency_penalty();
  out.presence_penalty = params.presence_penalty();
  out.want_logprobs = params.want_logprobs();
  out.top_logprobs = static_cast<int32_t>(params.top_logprobs());
  for (const auto& [id, bias] : params.logit_bias()) {
    SETU_RETURN_IF_ERROR(CheckId("sampling.logit_bias id", id, vocabulary));
    if (!std::isfinite(bias)) return Refuse("sampling.logit_bias", bias, "finite", "");
    out.logit_bias.emplace_back(static_cast<int32_t>(id), bias);
  }
  std::sort(out.logit_bias.begin(), out.logit_bias.end());
  for (uint32_t id : params.end_ids()) {
    SETU_RETURN_IF_ERROR(CheckId("sampling.end_ids", id, vocabulary));
    out.end_ids.push_back(static_cast<int32_t>(id));
  }
  std::sort(out.end_ids.begin(), out.end_ids.end());
  out.end_ids.erase(std::unique(out.end_ids.begin(), out.end_ids.end()), out.end_ids.end());
  return out;
}

worker::v1::SampledToken ToProto(const engine::SampledToken& token) {
  worker::v1::SampledToken out;
  out.set_id(token.id);
  out.set_logprob(token.logprob);
  for (const engine::TopToken& top : token.top) {
    worker::v1::TopToken* to = out.add_top();
    to->set_id(top.id);
    to->set_logprob(top.logprob);
  }
  return out;
}

absl::StatusOr<engine::SampledToken> FromProto(const worker::v1::SampledToken& token,
                                               int32_t vocabulary) {
  SETU_RETURN_IF_ERROR(CheckId("token.id", token.id(), vocabulary));
  SETU_RETURN_IF_ERROR(CheckInt("token.top.size", token.top_size(), 0, vocabulary));
  engine::SampledToken out{static_cast<int32_t>(token.id()), token.logprob(), {}};
  for (const worker::v1::TopToken& top : token.top()) {
    SETU_RETURN_IF_ERROR(CheckId("token.top id", top.id(), vocabulary));
    out.top.push_back({static_cast<int32_t>(top.id()), top.logprob()});
  }
  return out;
}

worker::v1::EndReason ToProto(engine::EndReason reason) {
  switch (reason) {
    case engine::EndReason::kNone:
      break;
    case engine::EndReason::kEndId:
      return worker::v1::END_REASON_END_ID;
    case engine::EndReason::kMaxTokens:
      return worker::v1::END_REASON_MAX_TOKENS;
  }
  return worker::v1::END_REASON_UNSPECIFIED;
}

engine::EndReason FromProto(worker::v1::EndReason reason) {
  switch (reason) {
    case worker::v1::END_REASON_END_ID:
      return engine::EndReason::kEndId;
    case worker::v1::END_REASON_MAX_TOKENS:
      return engine::EndReason::kMaxTokens;
    default:
      return engine::EndReason::kNone;
  }
}

worker::v1::FirstToken ToProto(const FirstToken& first) {
  worker::v1::FirstToken out;
  out.set_choice(first.choice);
  *out.mutable_token() = ToProto(first.token);
  out.set_end(ToProto(first.end));
  return out;
}

absl::StatusOr<FirstToken> FromProto(const worker::v1::FirstToken& first, int32_t vocabulary) {
  SETU_ASSIGN_OR_RETURN(engine::SampledToken token, FromProto(first.token(), vocabulary));
  return FirstToken{first.choice(), std::move(token), FromProto(first.end())};
}

worker::v1::Fingerprint ToProto(const engine::RunnerFingerprint& fingerprint) {
  worker::v1::Fingerprint out;
  out.set_model(fingerprint.model);
  out.set_tokenizer(fingerprint.tokenizer);
  out.set_numerics(fingerprint.numerics);
  out.set_logits_digest(fingerprint.logits_digest);
  out.set_allow_mixed_numerics(fingerprint.allow_mixed_numerics);
  worker::v1::KvLayout* layout = out.mutable_kv_layout();
  layout->set_version(kKvLayoutVersion);
  layout->set_block_tokens(fingerprint.layout.block_tokens);
  layout->set_layers(fingerprint.layout.layers);
  layout->set_kv_heads(fingerprint.layout.kv_heads);
  layout->set_head_dim(fingerprint.layout.head_dim);
  layout->set_value_bytes(kernels::KvTypeBytes(fingerprint.layout.type));
  return out;
}

Mixing MixingOf(const worker::v1::Fingerprint& ours, const worker::v1::Fingerprint& theirs) {
  const bool both = ours.allow_mixed_numerics() && theirs.allow_mixed_numerics();
  return both ? Mixing::kAllowed : Mixing::kRefused;
}

std::string Difference(const worker::v1::Fingerprint& ours, const worker::v1::Fingerprint& theirs,
                       Mixing mixing) {
  const bool alike = mixing == Mixing::kRefused;
  if (alike && ours.numerics() != theirs.numerics()) {
    return Differ("numeric path", ours.numerics(), theirs.numerics());
  }
  if (ours.model() != theirs.model()) {
    return Differ("digest of the model", absl::Hex(ours.model()), absl::Hex(theirs.model()));
  }
  if (ours.tokenizer() != theirs.tokenizer()) {
    return Differ("digest of the tokenizer", absl::Hex(ours.tokenizer()),
                  absl::Hex(theirs.tokenizer()));
  }
  const auto text = alike ? SizedLayoutText : LayoutText;
  const std::string layout = text(ours.kv_layout()), their_layout = text(theirs.kv_layout());
  if (layout != their_layout) return Differ("layout of a KV block", layout, their_layout);
  if (alike && ours.logits_digest() != theirs.logits_digest()) {
    return Differ("digest of the logits", absl::Hex(ours.logits_digest()),
                  absl::Hex(theirs.logits_digest()));
  }
  return "";
}

bool SameNumerics(const worker::v1::Fingerprint& ours, const worker::v1::Fingerprint& theirs) {
  return ours.numerics() == theirs.numerics() && ours.logits_digest() == theirs.logits_digest();
}

absl::StatusOr<kernels::KvType> KvTypeOf(const worker::v1::Fingerprint& fingerprint) {
  using kernels::KvType;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    const std::string part = absl::StrCat("/kv-", kernels::KvTypeName(type), "/");
    if (absl::StrContains(fingerprint.numerics(), part) &&
        fingerprint.kv_layout().value_bytes() == kernels::KvTypeBytes(type)) {
      return type;
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "numeric path ", fingerprint.numerics(), " with values of ",
      fingerprint.kv_layout().value_bytes(),
      " bytes names no KV type that is known here; run the same release on all workers"));
}

worker::v1::SequenceState ToProto(const Sequence& sequence) {
  worker::v1::SequenceState out;
  out.set_uuid(sequence.uuid);
  out.mutable_ids()->Add(sequence.ids.begin(), sequence.ids.end());
  out.set_prompt_length(sequence.prompt_length);
  *out.mutable_sampling() = ToProto(sequence.sampling);
  out.mutable_choices()->Add(sequence.choices.begin(), sequence.choices.end());
  out.set_cache_salt(sequence.cache_salt);
  return out;
}

absl::StatusOr<Sequence> FromProto(const worker::v1::SequenceState& state, int32_t vocabulary) {
  if (state.uuid().empty() || state.uuid().size() > kMaxUuidBytes) {
    return Refuse("sequence.uuid size", state.uuid().size(), "1 to ", kMaxUuidBytes);
  }
  if (state.ids().empty()) return Refuse("sequence.ids size", 0, "at least ", 1);
  SETU_RETURN_IF_ERROR(
      CheckInt("sequence.prompt_length", state.prompt_length(), 1, state.ids_size()));
  SETU_RETURN_IF_ERROR(CheckChoices(state));
  Sequence out;
  SETU_ASSIGN_OR_RETURN(out.sampling, FromProto(state.sampling(), vocabulary));
  out.prompt_length = static_cast<int32_t>(state.prompt_length());
  if (state.ids_size() - out.prompt_length >= out.sampling.max_tokens) {
    return Refuse("number of ids after the prompt", state.ids_size() - out.prompt_length,
                  "below max_tokens ", out.sampling.max_tokens);
  }
  for (uint32_t id : state.ids()) SETU_RETURN_IF_ERROR(CheckId("sequence.ids", id, vocabulary));
  out.uuid = state.uuid();
  out.ids.assign(state.ids().begin(), state.ids().end());
  out.choices.assign(state.choices().begin(), state.choices().end());
  out.cache_salt = state.cache_salt();
  return out;
}

uint64_t IdsDigest(std::span<const engine::TokenId> ids) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (engine::TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (static_cast<uint32_t>(id) >> shift & 0xff)) * 0x100000001b3u;
    }
  }
  return hash;
}

}  // namespace setu::wire
