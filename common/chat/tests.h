// SPDX-License-Identifier: Apache-2.0
// Tests: `value is name`, as Jinja names them.
// Source: https://jinja.palletsprojects.com/en/stable/templates/#builtin-tests
#ifndef SETU_COMMON_CHAT_TESTS_H_
#define SETU_COMMON_CHAT_TESTS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "common/chat/arguments.h"
#include "common/chat/meter.h"
#include "common/chat/value.h"

namespace setu::chat {

// INVALID_ARGUMENT for an unknown name or an argument that does not fit.
absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& value,
                               const Arguments& arguments, Meter& meter);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_TESTS_H_
