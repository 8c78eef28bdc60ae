// SPDX-License-Identifier: Apache-2.0
// Methods of strings, mappings and loops, as Python and Jinja name them.
#ifndef SETU_COMMON_CHAT_METHODS_H_
#define SETU_COMMON_CHAT_METHODS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "common/chat/arguments.h"
#include "common/chat/meter.h"
#include "common/chat/value.h"

namespace setu::chat {

// Null where values of this type have no such method.
const Builtin* FindMethod(const Value& value, std::string_view name);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_METHODS_H_
