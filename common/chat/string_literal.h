// SPDX-License-Identifier: Apache-2.0
// Text as Python writes and reads it between quotes.
#ifndef SETU_COMMON_CHAT_STRING_LITERAL_H_
#define SETU_COMMON_CHAT_STRING_LITERAL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace setu::chat {

// Escapes such as \n, \', \x41, \u00e9 and \101 become what they stand for; an unknown one stays as
// it is. INVALID_ARGUMENT for one that is cut short or is no character.
absl::StatusOr<std::string> Unescape(std::string_view literal);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_STRING_LITERAL_H_
