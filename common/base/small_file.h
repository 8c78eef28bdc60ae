// SPDX-License-Identifier: Apache-2.0
// A file that is read whole: settings, keys.
//
//   SETU_ASSIGN_OR_RETURN(std::string text, ReadSmallFile("--config file", path, 64 << 10));
#ifndef SETU_COMMON_BASE_SMALL_FILE_H_
#define SETU_COMMON_BASE_SMALL_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace setu {

// A regular file of at most `most` bytes: a pipe or a device might never end, and would not be
// there again at the next look. INVALID_ARGUMENT: "cannot read `what` `path`: why".
absl::StatusOr<std::string> ReadSmallFile(absl::string_view what, const std::string& path,
                                          size_t most);

}  // namespace setu

#endif  // SETU_COMMON_BASE_SMALL_FILE_H_
