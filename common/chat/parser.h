// SPDX-License-Identifier: Apache-2.0
// A template's source to its tree. Known statements: for (else, if), if (elif, else), set (and its
// block), macro, raw, break, continue, generation.
#ifndef SETU_COMMON_CHAT_PARSER_H_
#define SETU_COMMON_CHAT_PARSER_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/chat/ast.h"

namespace setu::chat {

// INVALID_ARGUMENT names line and construct. Nothing in the tree nests deeper than `max_depth`.
absl::StatusOr<Body> ParseTemplate(std::string_view source, size_t max_depth);

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_PARSER_H_
