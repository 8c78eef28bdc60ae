// SPDX-License-Identifier: Apache-2.0
#include "services/router/model_info.h"

#include "common/base/status_macros.h"
#include "common/engine/model_runner.h"
#include "common/model/model_config.h"
#include "services/router/field_check.h"
#include "services/router/sampling_fields.h"

namespace setu::router {
namespace {

constexpr char kTemperatureKey[] = "general.sampling.temp";  // as llama.cpp names it

}  // namespace

absl::StatusOr<ModelInfo> ReadModelInfo(const model::GgufFile& file) {
  SETU_ASSIGN_OR_RETURN(model::ModelConfig config, model::ReadModelConfig(file));
  ModelInfo info;
  info.name = config.name;
  info.architecture = config.architecture;
  info.quantization = config.quantization;
  info.context_length = config.context_length;
  info.tokenizer_digest = engine::TokenizerDigest(file);
  if (file.Has(kTemperatureKey)) {
    SETU_ASSIGN_OR_RETURN(info.temperature, file.Float(kTemperatureKey));
    SETU_RETURN_IF_ERROR(CheckRange(kTemperatureKey, info.temperature, 0.0f, kMaxTemperature));
  }
  if (file.Has("tokenizer.chat_template")) {
    SETU_ASSIGN_OR_RETURN(std::string source, file.String("tokenizer.chat_template"));
    SETU_ASSIGN_OR_RETURN(info.chat, chat::ChatTemplate::Parse(source));
  }
  return info;
}

}  // namespace setu::router
