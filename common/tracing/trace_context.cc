// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace setu::tracing {
namespace {

// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
constexpr size_t kTraceAt = 3, kSpanAt = 36, kFlagsAt = 53, kLength = 55;

// Lower case alone, as the standard has it.
std::optional<uint8_t> Digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

bool ReadHex(std::string_view digits, std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto high = Digit(digits[2 * i]), low = Digit(digits[2 * i + 1]);
    if (!high || !low) return false;
    bytes[i] = static_cast<uint8_t>(*high << 4 | *low);
  }
  return true;
}

void WriteHex(std::span<const uint8_t> bytes, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xF];
  }
}

bool AllZero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

// Later versions may append fields.
bool EndsWhereItMay(std::string_view header, uint8_t version) {
  return header.size() == kLength || (version > 0 && header[kLength] == '-');
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(std::string_view header) {
  if (header.size() < kLength) return std::nullopt;
  for (const size_t dash : {kTraceAt - 1, kSpanAt - 1, kFlagsAt - 1}) {
    if (header[dash] != '-') return std::nullopt;
  }
  TraceContext context;
  std::array<uint8_t, 1> version{}, flags{};
  if (!ReadHex(header, version) || !ReadHex(header.substr(kTraceAt), context.trace_id) ||
      !ReadHex(header.substr(kSpanAt), context.span_id) ||
      !ReadHex(header.substr(kFlagsAt), flags)) {
    return std::nullopt;
  }
  constexpr uint8_t kNoVersion = 0xFF;
  if (version[0] == kNoVersion || !EndsWhereItMay(header, version[0])) return std::nullopt;
  if (AllZero(context.trace_id) || AllZero(context.span_id)) return std::nullopt;
  // What the other flags of a later version mean is not known.
  context.flags = flags[0] & TraceContext::kSampled;
  return context;
}

std::string Traceparent(const TraceContext& context) {
  std::string header = "00-";
  WriteHex(context.trace_id, header);
  header += '-';
  WriteHex(context.span_id, header);
  header += '-';
  WriteHex(std::span(&context.flags, 1), header);
  return header;
}

}  // namespace setu::tracing
