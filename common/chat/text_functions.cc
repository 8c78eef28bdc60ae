// SPDX-License-Identifier: Apache-2.0
#include "common/chat/text_functions.h"

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "common/base/status_macros.h"
#include "common/chat/print.h"

namespace setu::chat {
namespace {

// A byte of a letter, also of one that is not ASCII.
bool InWord(char c) {
  return absl::ascii_isalpha(static_cast<unsigned char>(c)) || (c & 0x80) != 0;
}

char UpperByte(char c) { return absl::ascii_toupper(static_cast<unsigned char>(c)); }
char LowerByte(char c) { return absl::ascii_tolower(static_cast<unsigned char>(c)); }

}  // namespace

Text Upper(const Text& text) {
  std::string bytes(text.view());
  for (char& c : bytes) c = UpperByte(c);
  return text.WithBytes(std::move(bytes));
}

Text Lower(const Text& text) {
  std::string bytes(text.view());
  for (char& c : bytes) c = LowerByte(c);
  return text.WithBytes(std::move(bytes));
}

Text Title(const Text& text) {
  std::string bytes(text.view());
  bool inside = false;
  for (char& c : bytes) {
    const bool letter = InWord(c);
    c = inside ? LowerByte(c) : UpperByte(c);
    inside = letter;
  }
  return text.WithBytes(std::move(bytes));
}

Text TitleWords(const Text& text) {
  constexpr std::string_view kBeforeWord = " \t\n\r\v\f-({[<";
  std::string bytes(text.view());
  bool inside = false;
  for (char& c : bytes) {
    const bool starts_word = kBeforeWord.find(c) != kBeforeWord.npos;
    c = inside ? LowerByte(c) : UpperByte(c);
    inside = !starts_word;
  }
  return text.WithBytes(std::move(bytes));
}

Text Capitalize(const Text& text) {
  std::string bytes(text.view());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = i == 0 ? UpperByte(bytes[i]) : LowerByte(bytes[i]);
  }
  return text.WithBytes(std::move(bytes));
}

absl::StatusOr<Text> Replace(const Text& text, std::string_view part, const Text& with,
                             int64_t most, Meter& meter) {
  SETU_RETURN_IF_ERROR(meter.Search(text.size(), part.size()));
  const std::string_view view = text.view();
  TextWriter writer(meter);
  size_t done = 0;
  size_t from = 0;
  for (int64_t count = 0; most < 0 || count < most; ++count) {
    const size_t found = view.find(part, from);
    if (found == view.npos) break;
    SETU_RETURN_IF_ERROR(writer.Append(text.Part(done, found)));
    SETU_RETURN_IF_ERROR(writer.Append(with));
    done = found + part.size();
    // An empty part stands before each character and at the end.
    if (part.empty() && found == view.size()) break;
    from = part.empty() ? found + CharacterBytes(view, found) : done;
  }
  SETU_RETURN_IF_ERROR(writer.Append(text.Part(done, text.size())));
  return writer.Take();
}

}  // namespace setu::chat
