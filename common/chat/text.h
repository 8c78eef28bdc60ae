// SPDX-License-Identifier: Apache-2.0
// Text that knows of each byte whether it came from the user (a message's role or content) or from
// the template. Cutting and joining keep the origin. Positions are bytes; Python's rules for what
// is white space, and one "character" for each code point.
#ifndef SETU_COMMON_CHAT_TEXT_H_
#define SETU_COMMON_CHAT_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/chat/chat_template.h"

namespace setu::chat {

class Text {
 public:
  Text() = default;
  Text(std::string bytes, bool from_user)
      : bytes_(std::move(bytes)), origins_(bytes_.size(), from_user ? kUser : kTemplate) {}

  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  std::string_view view() const { return bytes_; }

  void Append(const Text& other) {
    bytes_ += other.bytes_;
    origins_ += other.origins_;
  }
  Text Part(size_t begin, size_t end) const;
  // The same origins over other bytes of the same number.
  Text WithBytes(std::string bytes) const;
  std::vector<Piece> Pieces() const;

 private:
  static constexpr char kTemplate = 't';
  static constexpr char kUser = 'u';

  std::string bytes_;
  std::string origins_;  // one for each byte
};

// Bytes of the character at `at`; 1 where no character begins there.
size_t CharacterBytes(std::string_view text, size_t at);
// Where each character begins, and at last the size of the text.
std::vector<size_t> CharacterOffsets(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
// Python's str.strip: of white space, or of any of the characters in `characters`.
Text Strip(const Text& text, std::optional<std::string_view> characters, Side side);
// Python's str.split: at runs of white space (and none at the ends), or at each `separator`, which
// is not empty. At most `most` cuts; negative: all.
std::vector<Text> Split(const Text& text, std::optional<std::string_view> separator, int64_t most);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_TEXT_H_
