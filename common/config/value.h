// SPDX-License-Identifier: Apache-2.0
// The kinds of value an option can have: how each is written, read and bounded.
//
//   int64_t memory = 4ll << 30;
//   Value value = BytesValue(&memory);
//   SETU_RETURN_IF_ERROR(value.set("512MiB"));
//   value.get();                                 // "512MiB"
#ifndef SETU_COMMON_CONFIG_VALUE_H_
#define SETU_COMMON_CONFIG_VALUE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"

namespace setu::config {

// A target seen as text. The target must outlive it.
struct Value {
  std::string placeholder;  // in --help: N, TEXT, ...; empty for a switch
  // The number it stands for in the unit that ranges use (bytes, seconds); 0 for text. The error
  // says what is allowed, as "must be ...". Sets nothing where it fails.
  std::function<absl::StatusOr<double>(absl::string_view text)> set;
  std::function<std::string()> get;          // as it would be written
  std::function<std::string(double)> write;  // a bound of the range as it would be written
  // Of what may be repeated, where `set` adds to what was there: forgets that. Else null.
  std::function<void()> clear = nullptr;
};

Value TextValue(std::string* target);
Value TextValue(std::optional<std::string>* target);
Value ListValue(std::vector<std::string>* target);       // a,b,c
Value RepeatedValue(std::vector<std::string>* target);   // one more text, taken as it is
Value ListenValue(std::string* target);                  // HOST:PORT, port 0 too
Value AddressValue(std::string* target);                 // HOST:PORT or dns:///HOST:PORT
Value AddressesValue(std::vector<std::string>* target);  // likewise, each once
Value SwitchValue(bool* target);                         // true, false, 1 or 0
Value NumberValue(int32_t* target);
Value NumberValue(int64_t* target);
Value NumberValue(double* target);
Value NumberValue(std::optional<int64_t>* target);
Value NumberValue(std::optional<double>* target);
Value DurationValue(Duration* target);  // 250ms, 30s, 10m, 1h30m
Value BytesValue(int64_t* target);      // 4096, 512MiB, 4GiB

}  // namespace setu::config

#endif  // SETU_COMMON_CONFIG_VALUE_H_
