// SPDX-License-Identifier: Apache-2.0
// The sentences in which the validator refuses a field: its name, its value, what is allowed.
#ifndef SETU_SERVICES_ROUTER_FIELD_CHECK_H_
#define SETU_SERVICES_ROUTER_FIELD_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/engine/sampling_params.h"

namespace setu::router {

// "sampling.top_p is 2; it must be in (0, 1]"
template <typename T>
absl::Status Refuse(absl::string_view field, T value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; it must be ", allowed));
}

// [lowest, highest]; NaN is in no range.
template <typename T>
absl::Status CheckRange(absl::string_view field, T value, T lowest, T highest) {
  if (value >= lowest && value <= highest) return absl::OkStatus();
  return Refuse(field, value, absl::StrCat("in [", lowest, ", ", highest, "]"));
}

// "stopping.strings has 17 entries; at most 16 are allowed"
inline absl::Status CheckCount(absl::string_view field, size_t count, size_t most) {
  if (count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has ", count, " entries; at most ", most, " are allowed"));
}

inline absl::Status CheckLength(absl::string_view field, absl::string_view value, size_t most) {
  if (value.size() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has ", value.size(), " bytes; at most ", most, " are allowed"));
}

inline absl::Status CheckId(absl::string_view field, uint32_t id, int32_t vocabulary) {
  if (id < static_cast<uint32_t>(vocabulary)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " holds ", id, "; the vocabulary's ids are in [0, ", vocabulary, ")"));
}

// A client's text inside an error: short and on one line.
inline std::string Quoted(absl::string_view text) {
  constexpr size_t kMost = 64;
  const bool whole = text.size() <= kMost;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMost)), whole ? "\"" : "...\"");
}

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_FIELD_CHECK_H_
