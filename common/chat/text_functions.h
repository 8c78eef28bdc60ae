// SPDX-License-Identifier: Apache-2.0
// Changes of a text that filters and methods share. Letters are those of ASCII: others keep their
// case.
#ifndef SETU_COMMON_CHAT_TEXT_FUNCTIONS_H_
#define SETU_COMMON_CHAT_TEXT_FUNCTIONS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/chat/meter.h"
#include "common/chat/text.h"

namespace setu::chat {

Text Upper(const Text& text);
Text Lower(const Text& text);
Text Title(const Text& text);       // str.title: a letter behind anything else upper, others lower
Text TitleWords(const Text& text);  // the filter's: a letter behind space, -, or a bracket upper
Text Capitalize(const Text& text);  // the first letter of all upper, the others lower

// Python's str.replace; the new parts have the origin of `with`. Negative `most`: all.
absl::StatusOr<Text> Replace(const Text& text, std::string_view part, const Text& with,
                             int64_t most, Meter& meter);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_TEXT_FUNCTIONS_H_
