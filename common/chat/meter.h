// SPDX-License-Identifier: Apache-2.0
// What a template may still use up. Everything that an untrusted template can make grow goes
// through here before it grows.
#ifndef SETU_COMMON_CHAT_METER_H_
#define SETU_COMMON_CHAT_METER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/chat/chat_template.h"

namespace setu::chat {

class Meter {
 public:
  explicit Meter(const Limits& limits) : limits_(limits) {}

  // One step: a statement, an expression, an element of a list, or 64 bytes of text.
  absl::Status Steps(size_t steps) {
    if (steps > limits_.steps - used_) {
      return absl::InvalidArgumentError(absl::StrCat("takes more than ", limits_.steps, " steps"));
    }
    used_ += steps;
    return absl::OkStatus();
  }
  // `bytes` of text are about to be made or looked through.
  absl::Status TextBytes(size_t bytes) { return Steps(1 + bytes / kBytesPerStep); }
  // A text of `bytes` is about to be searched for one of `wanted` bytes.
  absl::Status Search(size_t bytes, size_t wanted) {
    return Steps((1 + bytes / kBytesPerStep) * (1 + wanted / 8));
  }
  // A text is about to have `bytes` in all.
  absl::Status TextSize(size_t bytes) const {
    if (bytes <= limits_.output_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("makes a text of more than ", limits_.output_bytes, " bytes"));
  }
  absl::Status Depth(size_t depth) const {
    if (depth <= limits_.depth) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("nests deeper than ", limits_.depth));
  }

 private:
  static constexpr size_t kBytesPerStep = 64;

  const Limits limits_;
  size_t used_ = 0;
};

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_METER_H_
