// SPDX-License-Identifier: Apache-2.0
// Values as text: as `{{ value }}` writes them (Python's str), and as JSON. Texts keep their
// origin.
#ifndef SETU_COMMON_CHAT_PRINT_H_
#define SETU_COMMON_CHAT_PRINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/chat/meter.h"
#include "common/chat/text.h"
#include "common/chat/value.h"

namespace setu::chat {

// Collects text within the limits.
class TextWriter {
 public:
  explicit TextWriter(Meter& meter) : meter_(meter) {}
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  absl::Status Append(const Text& text);
  absl::Status Append(std::string_view from_template);
  Text Take() { return std::move(text_); }
  Meter& meter() { return meter_; }

 private:
  Meter& meter_;
  Text text_;
};

// Python's str(value); nothing for an undefined value.
absl::Status Print(const Value& value, TextWriter& out);
absl::StatusOr<Text> ToText(const Value& value, Meter& meter);
// json.dumps(value, ensure_ascii=False, indent=indent).
absl::Status PrintJson(const Value& value, std::optional<int64_t> indent, TextWriter& out);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_PRINT_H_
