// SPDX-License-Identifier: Apache-2.0
// A number that two files, or two copies of one, are compared by.
//
//   Digest digest;
//   digest.Add(name);
//   digest.Add(data, bytes);
//   if (digest.value() != expected) ...
//
// Another way to make it changes what workers compare, and is a new format of packed_cache.cc.
#ifndef SETU_COMMON_MODEL_DIGEST_H_
#define SETU_COMMON_MODEL_DIGEST_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace setu::model {

// 64 bits over words of 8 bytes, multiply and rotate: as fast as memory is read, and good against
// accidents (another file, another quantisation, a damaged copy), not against an attacker.
class Digest {
 public:
  void Add(const void* data, size_t bytes) {
    const auto* at = static_cast<const std::byte*>(data);
    Mix(bytes);
    for (; bytes >= sizeof(uint64_t); at += sizeof(uint64_t), bytes -= sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, at, sizeof(word));
      Mix(word);
    }
    if (bytes == 0) return;
    uint64_t last = 0;
    std::memcpy(&last, at, bytes);
    Mix(last);
  }
  void Add(std::string_view text) { Add(text.data(), text.size()); }
  uint64_t value() const {
    const uint64_t folded = (state_ ^ (state_ >> 32)) * kMultiplier;
    return folded ^ (folded >> 29);
  }

 private:
  static constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  void Mix(uint64_t word) { state_ = std::rotl((state_ ^ word) * kMultiplier, 29) + word; }
  uint64_t state_ = 0x5e70;
};

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_DIGEST_H_
