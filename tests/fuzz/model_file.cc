// SPDX-License-Identifier: Apache-2.0
// A model file, as far as its weights: shown as clean text, and refused by name or with a config
// within its limits.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/model/gguf.h"
#include "common/model/inspect.h"
#include "common/model/model_config.h"
#include "common/tokenizer/tokenizer.h"
#include "tests/fuzz/memory_file.h"

namespace setu::model {
namespace {

// It goes to a terminal.
void CheckShown(std::string_view text) {
  SETU_CHECK(ValidUtf8Prefix(text) == text.size(), "what is shown is UTF-8");
  for (const char byte : text) {
    SETU_CHECK(byte == '\n' || !std::iscntrl(static_cast<unsigned char>(byte)),
               "what is shown controls no terminal");
  }
}

void CheckError(const absl::Status& status) {
  SETU_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
                 status.code() == absl::StatusCode::kNotFound,
             "a wrong file is known so");
  SETU_CHECK(status.message().substr(0, 13) == "load failed: ", "an error says what failed");
  SETU_CHECK(status.message().size() < 1024, "an error is short");
  CheckShown({status.message().data(), status.message().size()});
}

void CheckConfig(const ModelConfig& c) {
  SETU_CHECK(
      c.layers > 0 && c.hidden > 0 && c.ffn_hidden > 0 && c.context_length > 0 && c.vocabulary > 0,
      "a model has a shape");
  SETU_CHECK(c.heads > 0 && c.kv_heads > 0 && c.head_dim > 0 && c.heads % c.kv_heads == 0,
             "heads share keys and values evenly");
  SETU_CHECK(c.rotary_dim >= 0 && c.rotary_dim <= c.head_dim && c.rotary_dim % 2 == 0,
             "rotation is inside a head");
  SETU_CHECK(c.norm_eps > 0 && c.rope_base > 0, "norms and angles have their constants");
}

void CheckFile(std::string_view bytes) {
  const fuzz::MemoryFile image(bytes);
  const auto file = GgufFile::Open(image.path());
  if (!file.ok()) return CheckError(file.status());
  CheckShown(Inspect(**file));
  const auto config = ReadModelConfig(**file);
  config.ok() ? CheckConfig(*config) : CheckError(config.status());
  const auto tokenizer = tokenizer::Tokenizer::FromGguf(**file);
  if (!tokenizer.ok()) CheckError(tokenizer.status());
}

}  // namespace
}  // namespace setu::model

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) setu::model::CheckFile({reinterpret_cast<const char*>(data), size});
  return 0;
}
