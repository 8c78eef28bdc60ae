// SPDX-License-Identifier: Apache-2.0
// A hash map from text, looked up by view without a copy.
#ifndef SETU_COMMON_TOKENIZER_TEXT_MAP_H_
#define SETU_COMMON_TOKENIZER_TEXT_MAP_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace setu::tokenizer {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

template <typename T>
using TextMap = absl::flat_hash_map<std::string, T, TextHash, std::equal_to<>>;

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_TEXT_MAP_H_
