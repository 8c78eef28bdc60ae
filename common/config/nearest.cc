// SPDX-License-Identifier: Apache-2.0
#include "common/config/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/strings/ascii.h"

namespace setu::config {
namespace {

// Wagner and Fischer's table, one row at a time. Letters are equal whatever their case.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (absl::ascii_tolower(a[i]) != absl::ascii_tolower(b[j]));
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string Nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // nobody mistypes more: bounds the table
  std::string best;
  if (word.size() > kLongest) return best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : known) {
    const size_t distance = Distance(word, name);
    if (distance >= least) continue;
    least = distance;
    best = name;
  }
  return best;
}

}  // namespace setu::config
