// SPDX-License-Identifier: Apache-2.0
// The edge: from the bytes a client sent to a type that needs no second check. Refuses by name
// whatever is malformed, unknown, out of range or too large, before anything is queued. Immutable:
// any number of threads (tokenising takes its time, so callers use a small pool).
//
//   Validator validator({.name = "smollm2", .tokenizer = tokenizer.get(), .chat = chat.get()},
//                       [] { return std::random_device{}(); });
//   absl::StatusOr<ValidRequest> request = validator.Validate(bytes, {.context_length = 2048});
//
// Errors are INVALID_ARGUMENT naming field, value and limit, or NOT_FOUND for an unknown model.
#ifndef SETU_SERVICES_ROUTER_VALIDATOR_H_
#define SETU_SERVICES_ROUTER_VALIDATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/chat/chat_template.h"
#include "common/tokenizer/tokenizer.h"
#include "services/router/valid_request.h"
#include "setu/v1/inference.pb.h"

namespace setu::router {

// What a request may need at most. In tokens.
struct Limits {
  int32_t context_length = 0;                         // prompt and answer of one choice together
  std::optional<int32_t> pool_tokens = std::nullopt;  // of the roomiest decode worker, if any
};

struct ServedModel {
  std::string name;
  const tokenizer::Tokenizer* tokenizer = nullptr;
  const chat::ChatTemplate* chat = nullptr;  // null: the model has no template
  float temperature = 1.0f;                  // where a request names none
};

struct TokenizeInput {
  std::string text;
  tokenizer::EncodeOptions options;
};

class Validator {
 public:
  // What `model` points to must outlive this. `draw_seed` is called from any thread.
  Validator(ServedModel model, std::function<uint64_t()> draw_seed);

  // `bytes` is a serialized setu.v1.GenerateRequest. An explicit max_tokens that does not fit is
  // refused; an absent one becomes all that fits. Text gets the begin token that the model
  // declares; so does a prompt of no ids. A chat gets what its template writes, no more.
  absl::StatusOr<ValidRequest> Validate(std::string_view bytes, const Limits& limits) const;
  // Serialized setu.v1.TokenizeRequest and setu.v1.DetokenizeRequest.
  absl::StatusOr<TokenizeInput> ValidateTokenize(std::string_view bytes) const;
  absl::StatusOr<std::vector<engine::TokenId>> ValidateDetokenize(std::string_view bytes) const;
  // Serialized setu.v1.ListModelsRequest, which has no fields.
  absl::Status ValidateListModels(std::string_view bytes) const;

 private:
  struct Prompt {
    std::vector<engine::TokenId> ids;
    std::string text;  // as rendered; empty where the request came as ids
  };
  absl::Status CheckModel(const std::string& name) const;
  absl::StatusOr<Prompt> ReadPrompt(const v1::GenerateRequest& request, int32_t most) const;
  absl::StatusOr<Prompt> ReadText(const std::string& text, int32_t most) const;
  absl::StatusOr<Prompt> ReadChat(const v1::Chat& chat, int32_t most) const;
  absl::StatusOr<std::vector<engine::TokenId>> ReadIds(
      absl::string_view field, const google::protobuf::RepeatedField<uint32_t>& ids) const;
  absl::Status CheckBytes(size_t bytes, int32_t most) const;

  const ServedModel model_;
  const std::function<uint64_t()> draw_seed_;
  size_t longest_token_bytes_ = 1;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_VALIDATOR_H_
