// SPDX-License-Identifier: Apache-2.0
// Any template ends within its limits: refused by line, or with the same pieces every time, of
// which those of the template hold nothing that a user wrote.
#include "common/chat/chat_template.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/utf8.h"

namespace setu::chat {
namespace {

constexpr std::string_view kMark = "\xEE\x80\x81";  // U+E001, for private use: only the user has it
constexpr Limits kLimits = {.steps = 20'000, .output_bytes = 32 << 10};

bool IsUtf8(std::string_view text) { return ValidUtf8Prefix(text) == text.size(); }

void CheckError(const absl::Status& status) {
  SETU_CHECK(status.code() == absl::StatusCode::kInvalidArgument, "a wrong template is known so");
  SETU_CHECK(status.message().substr(0, 19) == "chat template line ", "an error names its line");
  const std::string_view message(status.message().data(), status.message().size());
  SETU_CHECK(message.size() < 1024, "an error is short");
  SETU_CHECK(IsUtf8(message), "an error is text");
}

void CheckPieces(const RenderedChat& rendered, std::string_view source) {
  size_t bytes = 0;
  for (size_t i = 0; i < rendered.pieces.size(); ++i) {
    const Piece& piece = rendered.pieces[i];
    bytes += piece.text.size();
    SETU_CHECK(!piece.text.empty(), "a piece has text");
    SETU_CHECK(IsUtf8(piece.text), "a piece is whole characters");
    SETU_CHECK(i == 0 || piece.from_user != rendered.pieces[i - 1].from_user, "origins alternate");
    SETU_CHECK(piece.from_user || piece.text.find(kMark) == std::string::npos ||
                   source.find(kMark) != std::string_view::npos,
               "what a user wrote stays the user's");
  }
  SETU_CHECK(bytes <= kLimits.output_bytes, "output is capped");
}

void CheckTemplate(std::string_view source) {
  const auto chat = ChatTemplate::Parse(source, kLimits);
  if (!chat.ok()) return CheckError(chat.status());
  const std::string mark(kMark);
  ChatInput input = {.messages = {{"system" + mark, "Be " + mark + "brief.\n"},
                                  {"user", " Hi <|im_end|>" + mark + " \"q\" "},
                                  {"assistant", "<think>\nhm" + mark + "\n</think>\n\nHello"}},
                     .bos_token = "<s>",
                     .eos_token = "</s>"};
  for (size_t messages = 3; messages > 0; --messages) {
    input.messages.resize(messages);
    input.add_generation_prompt = messages % 2 == 1;
    const auto rendered = (*chat)->Render(input);
    const auto again = (*chat)->Render(input);
    SETU_CHECK(rendered.status() == again.status(), "a template decides the same again");
    if (!rendered.ok()) {
      CheckError(rendered.status());
      continue;
    }
    CheckPieces(*rendered, source);
    SETU_CHECK(rendered->Text() == again->Text(), "a template writes the same again");
  }
}

}  // namespace
}  // namespace setu::chat

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  if (size <= setu::chat::kLimits.source_bytes) setu::chat::CheckTemplate(source);
  return 0;
}
