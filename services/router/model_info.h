// SPDX-License-Identifier: Apache-2.0
// The served model as far as the router goes.
//
//   SETU_ASSIGN_OR_RETURN(ModelInfo model, ReadModelInfo(*file));
#ifndef SETU_SERVICES_ROUTER_MODEL_INFO_H_
#define SETU_SERVICES_ROUTER_MODEL_INFO_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/chat/chat_template.h"
#include "common/model/gguf.h"

namespace setu::router {

// What the router knows of the served model; the tokenizer comes from the same file.
struct ModelInfo {
  std::string name;
  std::string architecture;
  std::string quantization;
  int32_t context_length = 0;
  uint64_t tokenizer_digest = 0;  // engine::TokenizerDigest, as in the workers' fingerprints
  float temperature = 1.0f;       // the file's own, for requests that name none
  std::unique_ptr<chat::ChatTemplate> chat;  // null: the file has none
};
// INVALID_ARGUMENT names the key that is missing or wrong.
absl::StatusOr<ModelInfo> ReadModelInfo(const model::GgufFile& file);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_MODEL_INFO_H_
