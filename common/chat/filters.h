// SPDX-License-Identifier: Apache-2.0
// Filters: `value|name`, as Jinja names them.
// Source: https://jinja.palletsprojects.com/en/stable/templates/#builtin-filters
#ifndef SETU_COMMON_CHAT_FILTERS_H_
#define SETU_COMMON_CHAT_FILTERS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "common/chat/arguments.h"
#include "common/chat/meter.h"
#include "common/chat/value.h"

namespace setu::chat {

// INVALID_ARGUMENT for an unknown name or arguments that do not fit.
absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& value,
                                  const Arguments& arguments, Meter& meter);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_FILTERS_H_
