// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>

namespace setu::fuzz {
namespace {

constexpr size_t kMostPartBytes = 64;

}  // namespace

std::string Mutator::Mutate(std::string_view input, std::string_view other) {
  std::string out(input);
  for (size_t changes = 1 + Below(4); changes > 0; --changes) ChangeOnce(out, other);
  if (out.size() > kMaxInputBytes) out.resize(kMaxInputBytes);
  return out;
}

void Mutator::ChangeOnce(std::string& input, std::string_view other) {
  const size_t at = Below(input.size() + 1);
  const size_t some = std::min(1 + Below(kMostPartBytes), input.size() - at);
  switch (Below(8)) {
    case 0:
      if (at < input.size()) input[at] ^= static_cast<char>(1 << Below(8));
      return;
    case 1:
      if (at < input.size()) input[at] = static_cast<char>(random_());
      return;
    case 2:
      input.erase(at, some);
      return;
    case 3:
      input.insert(at, std::string(Part(input)));
      return;
    case 4:
      input.insert(at, Part(other));
      return;
    case 5: {
      const std::string number = Number();
      input.replace(at, std::min(number.size(), input.size() - at), number);
      return;
    }
    case 6:
      input.insert(at, Number());
      return;
    case 7:  // the begin of one, the end of another
      input.replace(at, std::string::npos, other.substr(Below(other.size() + 1)));
      return;
  }
}

// Little-endian, of 1, 2, 4 or 8 bytes: powers of two and their neighbours, and small ones.
std::string Mutator::Number() {
  uint64_t value = Below(2) == 0 ? uint64_t{1} << Below(64) : Below(256);
  value += Below(3) - 1;
  if (Below(8) == 0) value = ~value;
  std::string bytes;
  for (size_t left = size_t{1} << Below(4); left > 0; --left, value >>= 8) {
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string_view Mutator::Part(std::string_view text) {
  return text.substr(Below(text.size() + 1), 1 + Below(kMostPartBytes));
}

}  // namespace setu::fuzz
