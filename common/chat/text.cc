// SPDX-License-Identifier: Apache-2.0
#include "common/chat/text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/check.h"
#include "common/base/utf8.h"

namespace setu::chat {
namespace {

// Bytes of the white space character at `at`, 0 where there is none. Python's str.isspace.
size_t SpaceBytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : uint8_t{0};
  };
  const uint8_t first = byte(0);
  if ((first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x20)) return 1;
  if (first == 0xC2 && (byte(1) == 0x85 || byte(1) == 0xA0)) return 2;
  if (at + 3 > text.size()) return 0;
  const unsigned point = (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  if (first == 0xE1 && point == 0x680) return 3;
  if (first == 0xE3 && point == 0x000) return 3;
  if (first != 0xE2) return 0;
  return point <= 0x0A || point == 0x28 || point == 0x29 || point == 0x2F || point == 0x5F ? 3 : 0;
}

size_t PreviousCharacter(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  return CharacterBytes(text, begin) == end - begin ? begin : end - 1;
}

}  // namespace

Text Text::Part(size_t begin, size_t end) const {
  Text part;
  part.bytes_ = bytes_.substr(begin, end - begin);
  part.origins_ = origins_.substr(begin, end - begin);
  return part;
}

Text Text::WithBytes(std::string bytes) const {
  SETU_CHECK(bytes.size() == bytes_.size(), "each byte keeps its origin");
  Text text = *this;
  text.bytes_ = std::move(bytes);
  return text;
}

std::vector<Piece> Text::Pieces() const {
  std::vector<Piece> pieces;
  for (size_t begin = 0; begin < bytes_.size();) {
    const size_t end = std::min(origins_.find_first_not_of(origins_[begin], begin), bytes_.size());
    pieces.push_back(
        {.text = bytes_.substr(begin, end - begin), .from_user = origins_[begin] == kUser});
    begin = end;
  }
  return pieces;
}

size_t CharacterBytes(std::string_view text, size_t at) {
  const size_t bytes = Utf8Length(static_cast<uint8_t>(text[at]));
  return bytes == 0 ? 1 : std::min(bytes, text.size() - at);
}

std::vector<size_t> CharacterOffsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); at += CharacterBytes(text, at)) offsets.push_back(at);
  offsets.push_back(text.size());
  return offsets;
}

Text Strip(const Text& text, std::optional<std::string_view> characters, Side side) {
  const std::string_view view = text.view();
  const auto strippable = [&](size_t at, size_t bytes) {
    if (!characters) return SpaceBytes(view, at) == bytes;
    const std::string_view wanted = view.substr(at, bytes);
    for (size_t i = 0; i < characters->size(); i += CharacterBytes(*characters, i)) {
      if (characters->substr(i, CharacterBytes(*characters, i)) == wanted) return true;
    }
    return false;
  };
  size_t begin = 0;
  size_t end = view.size();
  while (side != Side::kRight && begin < end) {
    const size_t bytes = CharacterBytes(view, begin);
    if (!strippable(begin, bytes)) break;
    begin += bytes;
  }
  while (side != Side::kLeft && begin < end) {
    const size_t last = PreviousCharacter(view, end);
    if (!strippable(last, end - last)) break;
    end = last;
  }
  return text.Part(begin, end);
}

std::vector<Text> Split(const Text& text, std::optional<std::string_view> separator, int64_t most) {
  const std::string_view view = text.view();
  std::vector<Text> parts;
  const auto full = [&] { return most >= 0 && static_cast<int64_t>(parts.size()) >= most; };
  if (separator) {
    size_t begin = 0;
    for (size_t at = view.find(*separator); at != view.npos && !full();
         at = view.find(*separator, begin)) {
      parts.push_back(text.Part(begin, at));
      begin = at + separator->size();
    }
    parts.push_back(text.Part(begin, view.size()));
    return parts;
  }
  for (size_t at = 0;;) {
    while (at < view.size() && SpaceBytes(view, at) > 0) at += SpaceBytes(view, at);
    if (at == view.size()) return parts;
    if (full()) {
      parts.push_back(text.Part(at, view.size()));
      return parts;
    }
    size_t end = at;
    while (end < view.size() && SpaceBytes(view, end) == 0) end += CharacterBytes(view, end);
    parts.push_back(text.Part(at, end));
    at = end;
  }
}

}  // namespace setu::chat
