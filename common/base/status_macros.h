// SPDX-License-Identifier: Apache-2.0
// Straight-line error flow over absl::Status.
//
//   SETU_RETURN_IF_ERROR(pool.Check());
//   SETU_ASSIGN_OR_RETURN(auto file, GgufFile::Open(path));
#ifndef SETU_COMMON_BASE_STATUS_MACROS_H_
#define SETU_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define SETU_RETURN_IF_ERROR(expression)                              \
  do {                                                                \
    if (absl::Status setu_status = (expression); !setu_status.ok()) { \
      return setu_status;                                             \
    }                                                                 \
  } while (false)

#define SETU_STATUS_CONCAT_INNER(a, b) a##b
#define SETU_STATUS_CONCAT(a, b) SETU_STATUS_CONCAT_INNER(a, b)
#define SETU_ASSIGN_OR_RETURN(declaration, expression) \
  SETU_ASSIGN_OR_RETURN_IMPL(SETU_STATUS_CONCAT(setu_statusor_, __LINE__), declaration, expression)
// A name and a declaration, which take no parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
#define SETU_ASSIGN_OR_RETURN_IMPL(holder, declaration, expression) \
  auto holder = (expression);                                       \
  if (!holder.ok()) return std::move(holder).status();              \
  declaration = *std::move(holder)
// NOLINTEND(bugprone-macro-parentheses)

#endif  // SETU_COMMON_BASE_STATUS_MACROS_H_
