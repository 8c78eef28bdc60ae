// SPDX-License-Identifier: Apache-2.0
#include "common/chat/print.h"

#include <charconv>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace setu::chat {
namespace {

// Python's repr of a float: the shortest digits that read back, with a point or an exponent.
std::string FloatText(double value, std::string_view infinity, std::string_view nan) {
  if (std::isnan(value)) return std::string(nan);
  if (std::isinf(value)) return absl::StrCat(value < 0 ? "-" : "", std::string(infinity));
  const double size = std::abs(value);
  const bool fixed = value == 0 || (size >= 1e-4 && size < 1e16);
  char buffer[64];
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value, format);
  std::string text(buffer, end);
  if (fixed && text.find('.') == text.npos) text += ".0";
  return text;
}

std::string HexEscape(std::string_view prefix, uint8_t byte) {
  return absl::StrCat(std::string(prefix), absl::Hex(byte, absl::kZeroPad2));
}

// How `c` is written between quotes; empty where it stands for itself.
std::string EscapeForRepr(char c, char quote) {
  if (c == '\\' || c == quote) return {'\\', c};
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  const auto byte = static_cast<uint8_t>(c);
  return byte < 0x20 || byte == 0x7F ? HexEscape("\\x", byte) : "";
}

std::string EscapeForJson(char c) {
  if (c == '\\' || c == '"') return {'\\', c};
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c == '\b') return "\\b";
  if (c == '\f') return "\\f";
  const auto byte = static_cast<uint8_t>(c);
  return byte < 0x20 ? HexEscape("\\u00", byte) : "";
}

// `text` between quotes. What needs no escape keeps its origin; an escape is the template's.
template <typename Escape>
absl::Status PrintQuoted(const Text& text, std::string_view quote, Escape escape, TextWriter& out) {
  SETU_RETURN_IF_ERROR(out.Append(quote));
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string escaped = escape(text.view()[at]);
    if (escaped.empty()) continue;
    SETU_RETURN_IF_ERROR(out.Append(text.Part(begin, at)));
    SETU_RETURN_IF_ERROR(out.Append(escaped));
    begin = at + 1;
  }
  SETU_RETURN_IF_ERROR(out.Append(text.Part(begin, text.size())));
  return out.Append(quote);
}

absl::Status PrintRepr(const Value& value, TextWriter& out) {
  if (std::holds_alternative<Undefined>(value)) return out.Append("Undefined");
  const Text* text = As<Text>(value);
  if (text == nullptr) return Print(value, out);
  const bool single = text->view().find('\'') != std::string_view::npos;
  const bool both = single && text->view().find('"') != std::string_view::npos;
  const char quote = single && !both ? '"' : '\'';
  return PrintQuoted(
      *text, std::string_view(&quote, 1), [&](char c) { return EscapeForRepr(c, quote); }, out);
}

absl::Status PrintList(const List& list, TextWriter& out) {
  SETU_RETURN_IF_ERROR(out.Append("["));
  std::string_view comma;
  for (const Value& item : list.items) {
    SETU_RETURN_IF_ERROR(out.Append(comma));
    SETU_RETURN_IF_ERROR(PrintRepr(item, out));
    comma = ", ";
  }
  return out.Append("]");
}

absl::Status PrintDict(const Dict& dict, TextWriter& out) {
  SETU_RETURN_IF_ERROR(out.Append("{"));
  std::string_view comma;
  for (const auto& [key, value] : dict.items) {
    SETU_RETURN_IF_ERROR(out.Append(comma));
    SETU_RETURN_IF_ERROR(PrintRepr(key, out));
    SETU_RETURN_IF_ERROR(out.Append(": "));
    SETU_RETURN_IF_ERROR(PrintRepr(value, out));
    comma = ", ";
  }
  return out.Append("}");
}

// JSON, `level` brackets deep.
class JsonPrinter {
 public:
  JsonPrinter(std::optional<int64_t> indent, TextWriter& out) : indent_(indent), out_(out) {}

  absl::Status Print(const Value& value, size_t level) {
    SETU_RETURN_IF_ERROR(out_.meter().Steps(1));
    if (const Text* text = As<Text>(value)) return PrintQuoted(*text, "\"", EscapeForJson, out_);
    if (const List* list = As<List>(value)) return PrintItems(*list, level);
    if (const Dict* dict = As<Dict>(value)) return PrintItems(*dict, level);
    if (const auto* flag = std::get_if<bool>(&value)) return out_.Append(*flag ? "true" : "false");
    if (const auto* number = std::get_if<int64_t>(&value))
      return out_.Append(absl::StrCat(*number));
    if (const auto* real = std::get_if<double>(&value)) {
      return out_.Append(FloatText(*real, "Infinity", "NaN"));
    }
    if (std::holds_alternative<None>(value)) return out_.Append("null");
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", std::string(TypeName(value)), " as JSON"));
  }

 private:
  absl::Status PrintItems(const List& list, size_t level) {
    return PrintAll("[", "]", list.items, level,
                    [&](const Value& item) { return Print(item, level + 1); });
  }

  absl::Status PrintItems(const Dict& dict, size_t level) {
    return PrintAll("{", "}", dict.items, level, [&](const auto& item) {
      SETU_RETURN_IF_ERROR(PrintQuoted(*item.first, "\"", EscapeForJson, out_));
      SETU_RETURN_IF_ERROR(out_.Append(": "));
      return Print(item.second, level + 1);
    });
  }

  template <typename Items, typename PrintOne>
  absl::Status PrintAll(std::string_view opening, std::string_view closing, const Items& items,
                        size_t level, PrintOne print_one) {
    SETU_RETURN_IF_ERROR(out_.Append(opening));
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) SETU_RETURN_IF_ERROR(out_.Append(indent_ ? "," : ", "));
      SETU_RETURN_IF_ERROR(NewLine(level + 1));
      SETU_RETURN_IF_ERROR(print_one(items[i]));
    }
    if (!items.empty()) SETU_RETURN_IF_ERROR(NewLine(level));
    return out_.Append(closing);
  }

  absl::Status NewLine(size_t level) {
    if (!indent_) return absl::OkStatus();
    return out_.Append("\n" + std::string(level * static_cast<size_t>(*indent_), ' '));
  }

  const std::optional<int64_t> indent_;
  TextWriter& out_;
};

}  // namespace

absl::Status TextWriter::Append(const Text& text) {
  SETU_RETURN_IF_ERROR(meter_.TextSize(text_.size() + text.size()));
  SETU_RETURN_IF_ERROR(meter_.TextBytes(text.size()));
  text_.Append(text);
  return absl::OkStatus();
}

absl::Status TextWriter::Append(std::string_view from_template) {
  return Append(Text(std::string(from_template), false));
}

absl::Status Print(const Value& value, TextWriter& out) {
  SETU_RETURN_IF_ERROR(out.meter().Steps(1));
  if (const Text* text = As<Text>(value)) return out.Append(*text);
  if (const List* list = As<List>(value)) return PrintList(*list, out);
  if (const Dict* dict = As<Dict>(value)) return PrintDict(*dict, out);
  if (const auto* flag = std::get_if<bool>(&value)) return out.Append(*flag ? "True" : "False");
  if (const auto* number = std::get_if<int64_t>(&value)) return out.Append(absl::StrCat(*number));
  if (const auto* real = std::get_if<double>(&value)) {
    return out.Append(FloatText(*real, "inf", "nan"));
  }
  if (std::holds_alternative<None>(value)) return out.Append("None");
  if (std::holds_alternative<Undefined>(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write ", std::string(TypeName(value)), " as text"));
}

absl::StatusOr<Text> ToText(const Value& value, Meter& meter) {
  TextWriter writer(meter);
  SETU_RETURN_IF_ERROR(Print(value, writer));
  return writer.Take();
}

absl::Status PrintJson(const Value& value, std::optional<int64_t> indent, TextWriter& out) {
  return JsonPrinter(indent, out).Print(value, 0);
}

}  // namespace setu::chat
