// SPDX-License-Identifier: Apache-2.0
// Every option of every Setu program. One environment often serves several of them, so a program
// passes over a variable that is another's option, and refuses one that is nobody's.
//
//   if (IsKnownVariable("SETU_CHUNK_TOKENS")) ...
#ifndef SETU_COMMON_CONFIG_KNOWN_NAMES_H_
#define SETU_COMMON_CONFIG_KNOWN_NAMES_H_

#include <span>
#include <string_view>

namespace setu::config {

// Ascending, as --help spells them: chunk-tokens.
std::span<const std::string_view> KnownNames();

// Whether one of them has this variable.
bool IsKnownVariable(std::string_view variable);

}  // namespace setu::config

#endif  // SETU_COMMON_CONFIG_KNOWN_NAMES_H_
