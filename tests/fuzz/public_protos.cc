// SPDX-License-Identifier: Apache-2.0
// Any bytes that a client sends are refused with a short status, or are a request within every
// limit that means the same when protobuf writes it anew. The first byte names the method.
#include <google/protobuf/message.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/chat/chat_template.h"
#include "services/router/validator.h"
#include "setu/v1/inference.pb.h"
#include "tests/fuzz/input.h"
#include "tests/services/router/byte_tokenizer.h"

namespace setu::router {
namespace {

constexpr char kTemplate[] =
    "{% if messages[0]['role'] == 'tool' %}{{ raise_exception(messages[0]['content']) }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}:{{ m['content'] }}<|im_end|>{% endfor %}";
constexpr Limits kLimits = {.context_length = 300, .pool_tokens = 280};

void CheckStatus(const absl::Status& status) {
  SETU_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
                 status.code() == absl::StatusCode::kNotFound,
             "a client's fault is named so");
  const std::string_view message(status.message().data(), status.message().size());
  SETU_CHECK(!message.empty() && message.size() < 2048, "an error is short");
  SETU_CHECK(ValidUtf8Prefix(message) == message.size(), "an error is text");
}

bool Within(float value, float lowest, float highest) {
  return value >= lowest && value <= highest;
}

bool IsId(const ByteTokenizer& tokenizer, int32_t id) {
  return id >= 0 && id < tokenizer.vocabulary();
}

void CheckRequest(const ByteTokenizer& tokenizer, const ValidRequest& request) {
  const engine::SamplingParams& s = request.sampling();
  SETU_CHECK(!request.prompt_ids().empty(), "a prompt has tokens");
  for (int32_t id : request.prompt_ids()) SETU_CHECK(IsId(tokenizer, id), "prompts are of ids");
  for (int32_t id : s.end_ids) SETU_CHECK(IsId(tokenizer, id), "ends are ids");
  for (const auto& [id, bias] : s.logit_bias) {
    SETU_CHECK(IsId(tokenizer, id) && Within(bias, -100, 100), "a bias is of an id");
  }
  const auto tokens = static_cast<int64_t>(request.prompt_ids().size()) + s.max_tokens;
  SETU_CHECK(s.max_tokens >= 1 && tokens <= *kLimits.pool_tokens, "prompt and answer fit");
  SETU_CHECK(s.min_tokens >= 0 && s.min_tokens <= s.max_tokens, "min_tokens fits");
  SETU_CHECK(Within(s.temperature, 0, 100) && s.top_k >= 0 && s.top_p > 0 && s.top_p <= 1 &&
                 Within(s.min_p, 0, 1) && Within(s.repetition_penalty, 0.01f, 100) &&
                 Within(s.frequency_penalty, -2, 2) && Within(s.presence_penalty, -2, 2) &&
                 s.top_logprobs >= 0 && s.top_logprobs <= 20,
             "every number is in its range");
  SETU_CHECK(request.choices() >= 1 && request.choices() <= 16, "choices are few");
  SETU_CHECK(request.stop_strings().size() <= 16, "stop strings are few");
  for (const std::string& stop : request.stop_strings()) {
    SETU_CHECK(!stop.empty() && stop.size() <= 256, "a stop string is short");
  }
}

void CheckSame(const ValidRequest& a, const ValidRequest& b) {
  const engine::SamplingParams &s = a.sampling(), &t = b.sampling();
  SETU_CHECK(a.prompt_ids() == b.prompt_ids() && a.label() == b.label() &&
                 a.stop_strings() == b.stop_strings() && a.choices() == b.choices() &&
                 a.echo() == b.echo() && a.prompt_text() == b.prompt_text() && s.seed == t.seed &&
                 s.max_tokens == t.max_tokens && s.min_tokens == t.min_tokens &&
                 s.temperature == t.temperature && s.top_k == t.top_k && s.top_p == t.top_p &&
                 s.min_p == t.min_p && s.logit_bias == t.logit_bias && s.end_ids == t.end_ids &&
                 s.want_logprobs == t.want_logprobs && s.top_logprobs == t.top_logprobs,
             "protobuf's own writing of a request is the same request");
}

template <typename Message>
std::string Rewritten(std::string_view bytes) {
  Message message;
  SETU_CHECK(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
             "what is taken can be parsed");
  SETU_CHECK(message.GetReflection()->GetUnknownFields(message).empty(),
             "nothing is accepted and ignored");
  return message.SerializeAsString();
}

void CheckGenerate(const Validator& validator, const ByteTokenizer& tokenizer,
                   std::string_view bytes) {
  const auto request = validator.Validate(bytes, kLimits);
  if (!request.ok()) return CheckStatus(request.status());
  CheckRequest(tokenizer, *request);
  const auto again = validator.Validate(Rewritten<v1::GenerateRequest>(bytes), kLimits);
  SETU_CHECK(again.ok(), "protobuf's own writing of a request is taken");
  CheckSame(*request, *again);
}

void CheckMethod(size_t method, std::string_view bytes) {
  const ByteTokenizer tokenizer;
  const std::unique_ptr<chat::ChatTemplate> chat = *chat::ChatTemplate::Parse(kTemplate);
  const Validator validator({.name = "bytes", .tokenizer = &tokenizer, .chat = chat.get()},
                            [] { return uint64_t{1}; });
  if (method == 0) return CheckGenerate(validator, tokenizer, bytes);
  if (method == 1) {
    const auto input = validator.ValidateTokenize(bytes);
    if (!input.ok()) return CheckStatus(input.status());
    const auto again = validator.ValidateTokenize(Rewritten<v1::TokenizeRequest>(bytes));
    SETU_CHECK(again.ok() && again->text == input->text, "a text is the same again");
  } else if (method == 2) {
    const auto ids = validator.ValidateDetokenize(bytes);
    if (!ids.ok()) return CheckStatus(ids.status());
    for (int32_t id : *ids) SETU_CHECK(IsId(tokenizer, id), "ids are of the vocabulary");
  } else {
    const absl::Status listed = validator.ValidateListModels(bytes);
    if (!listed.ok()) return CheckStatus(listed);
    SETU_CHECK(bytes.empty(), "a request without fields has no bytes");
  }
}

}  // namespace
}  // namespace setu::router

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setu::fuzz::Input input(data, size);
  const size_t method = input.Below(4);
  setu::router::CheckMethod(method, input.Rest());
  return 0;
}
