// SPDX-License-Identifier: Apache-2.0
// The known name that a mistyped one most likely meant.
#ifndef SETU_COMMON_CONFIG_NEAREST_H_
#define SETU_COMMON_CONFIG_NEAREST_H_

#include <string>
#include <string_view>
#include <vector>

namespace setu::config {

// Fewest insertions, deletions and changes of one character from `word`, whatever its case; ties go
// to the first.
// Empty where none is within a third of the word's length (at least two).
std::string Nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace setu::config

#endif  // SETU_COMMON_CONFIG_NEAREST_H_
