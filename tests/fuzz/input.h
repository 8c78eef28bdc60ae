// SPDX-License-Identifier: Apache-2.0
// Takes an input apart: choices from its front, the rest as it is. What is not there reads as 0 and
// as empty text, so that every input means something.
//
//   Input input(data, size);
//   const size_t stops = input.Below(4);
//   const std::string_view stop = input.Text(input.Below(9));
#ifndef SETU_TESTS_FUZZ_INPUT_H_
#define SETU_TESTS_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace setu::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return left_.empty(); }
  uint8_t Byte() {
    const std::string_view byte = Text(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte[0]);
  }
  // Of one byte; `limit` is 1 to 256.
  size_t Below(size_t limit) { return Byte() % limit; }
  // At most `bytes`.
  std::string_view Text(size_t bytes) {
    const std::string_view text = left_.substr(0, bytes);
    left_.remove_prefix(text.size());
    return text;
  }
  std::string_view Rest() { return Text(left_.size()); }

 private:
  std::string_view left_;
};

}  // namespace setu::fuzz

#endif  // SETU_TESTS_FUZZ_INPUT_H_
