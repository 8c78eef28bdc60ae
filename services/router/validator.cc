// SPDX-License-Identifier: Apache-2.0
#include "services/router/validator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "services/router/field_check.h"
#include "services/router/sampling_fields.h"
#include "services/router/wire_check.h"

namespace setu::router {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;
constexpr size_t kMaxMessages = 4096;
constexpr size_t kMaxInnerErrorBytes = 512;
// Of Tokenize and Detokenize. In either direction the answer then fits the 4 MiB that a client
// takes: an id is at most 3 bytes, and so is what stands for a byte that is no UTF-8.
constexpr size_t kMaxTextBytes = size_t{1} << 20;

template <typename Message>
absl::StatusOr<Message> Parse(std::string_view bytes) {
  SETU_RETURN_IF_ERROR(CheckWire(bytes, *Message::descriptor()));
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return absl::InvalidArgumentError(
      absl::StrCat("the request is no ", Message::descriptor()->full_name()));
}

absl::Status CheckRequestId(const std::string& id) {
  SETU_RETURN_IF_ERROR(CheckLength("request_id", id, kMaxRequestIdBytes));
  const bool printable = std::none_of(id.begin(), id.end(), absl::ascii_iscntrl);
  if (printable) return absl::OkStatus();
  return Refuse("request_id", Quoted(id), "free of control characters: it goes to logs");
}

// What a template or tokenizer says about a field; a template may repeat a client's text in it.
absl::Status About(absl::string_view field, const absl::Status& status) {
  const std::string_view message(status.message().data(), status.message().size());
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", std::string(Utf8Start(message, kMaxInnerErrorBytes))));
}

std::string Describe(const Limits& limits) {
  const std::string context = absl::StrCat("the model's context is ", limits.context_length);
  if (!limits.pool_tokens) return context;
  return absl::StrCat(context, ", a decode worker's pool ", *limits.pool_tokens);
}

// Tokens of prompt and answer together.
int32_t Most(const Limits& limits) {
  return std::min(limits.context_length, limits.pool_tokens.value_or(limits.context_length));
}

absl::StatusOr<int32_t> MaxTokens(const v1::Sampling& sampling, const Limits& limits,
                                  int32_t prompt_tokens) {
  const int32_t room = Most(limits) - prompt_tokens;
  if (room < 1) {
    return absl::InvalidArgumentError(absl::StrCat("the prompt has ", prompt_tokens,
                                                   " tokens; with 1 of answer it must fit ",
                                                   Most(limits), " (", Describe(limits), ")"));
  }
  if (!sampling.has_max_tokens()) return room;
  const uint32_t max_tokens = sampling.max_tokens();
  if (max_tokens == 0) return Refuse("sampling.max_tokens", 0, "at least 1");
  if (max_tokens <= static_cast<uint32_t>(room)) return static_cast<int32_t>(max_tokens);
  return absl::InvalidArgumentError(
      absl::StrCat("sampling.max_tokens is ", max_tokens, "; behind a prompt of ", prompt_tokens,
                   " tokens at most ", room, " fit (", Describe(limits), ")"));
}

absl::Status CheckMinTokens(const engine::SamplingParams& params) {
  if (params.min_tokens <= params.max_tokens) return absl::OkStatus();
  return Refuse("sampling.min_tokens", params.min_tokens,
                absl::StrCat("at most max_tokens, ", params.max_tokens));
}

// A template gives any role a turn of its own, also one that its model never met.
absl::Status CheckRole(size_t index, absl::string_view role) {
  for (absl::string_view known : {"system", "user", "assistant", "tool"}) {
    if (role == known) return absl::OkStatus();
  }
  return Refuse(absl::StrCat("chat.messages[", index, "].role"), Quoted(role),
                "system, user, assistant or tool");
}

absl::StatusOr<chat::ChatInput> ReadMessages(const v1::Chat& chat) {
  if (chat.messages().empty()) return absl::InvalidArgumentError("chat.messages is empty");
  SETU_RETURN_IF_ERROR(CheckCount("chat.messages", chat.messages_size(), kMaxMessages));
  chat::ChatInput input;
  for (const v1::ChatMessage& message : chat.messages()) {
    SETU_RETURN_IF_ERROR(CheckRole(input.messages.size(), message.role()));
    input.messages.push_back({message.role(), message.content()});
  }
  if (chat.has_add_generation_prompt()) {
    input.add_generation_prompt = chat.add_generation_prompt();
  }
  return input;
}

}  // namespace

Validator::Validator(ServedModel model, std::function<uint64_t()> draw_seed)
    : model_(std::move(model)), draw_seed_(std::move(draw_seed)) {
  for (engine::TokenId id = 0; id < model_.tokenizer->vocabulary(); ++id) {
    longest_token_bytes_ =
        std::max(longest_token_bytes_, model_.tokenizer->Bytes(id, /*special=*/true).size());
  }
}

absl::StatusOr<ValidRequest> Validator::Validate(std::string_view bytes,
                                                 const Limits& limits) const {
  SETU_ASSIGN_OR_RETURN(const auto request, Parse<v1::GenerateRequest>(bytes));
  SETU_RETURN_IF_ERROR(CheckModel(request.model()));
  SETU_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  ValidRequest valid;
  valid.label_ = request.request_id();
  SETU_ASSIGN_OR_RETURN(valid.choices_, ReadChoices(request.sampling()));
  SETU_ASSIGN_OR_RETURN(valid.stop_strings_, ReadStopStrings(request.stopping()));
  SETU_ASSIGN_OR_RETURN(valid.sampling_,
                        ReadSampling(request, *model_.tokenizer, model_.temperature));
  SETU_ASSIGN_OR_RETURN(Prompt prompt, ReadPrompt(request, Most(limits)));
  const auto prompt_tokens = static_cast<int32_t>(prompt.ids.size());
  SETU_ASSIGN_OR_RETURN(valid.sampling_.max_tokens,
                        MaxTokens(request.sampling(), limits, prompt_tokens));
  SETU_RETURN_IF_ERROR(CheckMinTokens(valid.sampling_));
  valid.sampling_.seed = request.sampling().has_seed() ? request.sampling().seed() : draw_seed_();
  valid.echo_ = request.output().echo();
  if (valid.echo_) {
    valid.prompt_text_ =
        prompt.text.empty() ? model_.tokenizer->Decode(prompt.ids) : std::move(prompt.text);
  }
  valid.prompt_ids_ = std::move(prompt.ids);
  return valid;
}

absl::Status Validator::CheckModel(const std::string& name) const {
  if (name.empty() || name == model_.name) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("model ", Quoted(name), " is not served; \"", model_.name,
                                          "\" is, also as \"\""));
}

absl::StatusOr<Validator::Prompt> Validator::ReadPrompt(const v1::GenerateRequest& request,
                                                        int32_t most) const {
  Prompt prompt;
  switch (request.input_case()) {
    case v1::GenerateRequest::kText: {
      SETU_ASSIGN_OR_RETURN(prompt, ReadText(request.text(), most));
      break;
    }
    case v1::GenerateRequest::kTokenIds: {
      SETU_ASSIGN_OR_RETURN(prompt.ids, ReadIds("token_ids.ids", request.token_ids().ids()));
      if (!prompt.ids.empty()) break;
      SETU_ASSIGN_OR_RETURN(prompt, ReadText("", most));
      break;
    }
    case v1::GenerateRequest::kChat: {
      SETU_ASSIGN_OR_RETURN(prompt, ReadChat(request.chat(), most));
      break;
    }
    case v1::GenerateRequest::INPUT_NOT_SET:
      return absl::InvalidArgumentError("one of text, token_ids and chat must be set");
  }
  if (!prompt.ids.empty()) return prompt;
  return absl::InvalidArgumentError("the prompt has 0 tokens; it must have at least 1");
}

absl::StatusOr<Validator::Prompt> Validator::ReadText(const std::string& text, int32_t most) const {
  SETU_RETURN_IF_ERROR(CheckBytes(text.size(), most));
  Prompt prompt;
  prompt.text = text;
  auto ids = model_.tokenizer->Encode(text, {.add_special = true});
  if (!ids.ok()) return About("text", ids.status());
  prompt.ids = *std::move(ids);
  return prompt;
}

absl::StatusOr<Validator::Prompt> Validator::ReadChat(const v1::Chat& chat, int32_t most) const {
  if (model_.chat == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("chat is not supported: model \"", model_.name,
                                                   "\" has no chat template; use text"));
  }
  SETU_ASSIGN_OR_RETURN(chat::ChatInput input, ReadMessages(chat));
  input.bos_token = model_.tokenizer->bos_text();
  input.eos_token = model_.tokenizer->eos_text();
  const auto rendered = model_.chat->Render(input);
  if (!rendered.ok()) return About("chat", rendered.status());
  Prompt prompt;
  prompt.text = rendered->Text();
  SETU_RETURN_IF_ERROR(CheckBytes(prompt.text.size(), most));
  std::vector<tokenizer::TextRun> runs;
  for (const chat::Piece& piece : rendered->pieces) {
    runs.push_back({.text = piece.text, .parse_special = !piece.from_user});
  }
  auto ids = model_.tokenizer->EncodeRuns(runs, /*add_special=*/false);
  if (!ids.ok()) return About("chat", ids.status());
  prompt.ids = *std::move(ids);
  return prompt;
}

absl::StatusOr<std::vector<engine::TokenId>> Validator::ReadIds(
    absl::string_view field, const google::protobuf::RepeatedField<uint32_t>& ids) const {
  for (uint32_t id : ids) {
    SETU_RETURN_IF_ERROR(CheckId(field, id, model_.tokenizer->vocabulary()));
  }
  return std::vector<engine::TokenId>(ids.begin(), ids.end());
}

// Before tokenising: no text has fewer tokens than its bytes divided by the longest token's.
absl::Status Validator::CheckBytes(size_t bytes, int32_t most) const {
  const size_t tokens = (bytes + longest_token_bytes_ - 1) / longest_token_bytes_;
  if (tokens <= static_cast<size_t>(most)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the prompt has at least ", tokens, " tokens; it must fit ", most));
}

absl::StatusOr<TokenizeInput> Validator::ValidateTokenize(std::string_view bytes) const {
  SETU_ASSIGN_OR_RETURN(auto request, Parse<v1::TokenizeRequest>(bytes));
  SETU_RETURN_IF_ERROR(CheckModel(request.model()));
  SETU_RETURN_IF_ERROR(CheckLength("text", request.text(), kMaxTextBytes));
  const bool add_special = !request.has_add_special() || request.add_special();
  return TokenizeInput{
      .text = std::move(*request.mutable_text()),
      .options = {.add_special = add_special, .parse_special = request.parse_special()}};
}

absl::StatusOr<std::vector<engine::TokenId>> Validator::ValidateDetokenize(
    std::string_view bytes) const {
  SETU_ASSIGN_OR_RETURN(const auto request, Parse<v1::DetokenizeRequest>(bytes));
  SETU_RETURN_IF_ERROR(CheckModel(request.model()));
  SETU_ASSIGN_OR_RETURN(auto ids, ReadIds("token_ids", request.token_ids()));
  size_t text_bytes = 0;
  for (engine::TokenId id : ids) text_bytes += model_.tokenizer->Bytes(id).size();
  if (text_bytes <= kMaxTextBytes) return ids;
  return absl::InvalidArgumentError(absl::StrCat("token_ids stand for ", text_bytes,
                                                 " bytes of text; at most ", kMaxTextBytes,
                                                 " are allowed; send them in parts"));
}

absl::Status Validator::ValidateListModels(std::string_view bytes) const {
  return Parse<v1::ListModelsRequest>(bytes).status();
}

}  // namespace setu::router
