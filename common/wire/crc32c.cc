// SPDX-License-Identifier: Apache-2.0
// CRC-32C with the reflected polynomial of RFC 3720, appendix B.4; by the CPU's instruction where
// it has one.
#include <array>
#include <cstring>

#include "common/wire/checksum.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace setu::wire {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  constexpr uint32_t kPolynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t Portable(uint32_t crc, const std::byte* data, size_t size) {
  for (; size > 0; ++data, --size) {
    crc = crc >> 8 ^ kTable[(crc & 0xff) ^ std::to_integer<uint32_t>(*data)];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t BySse42(uint32_t crc, const std::byte* data,
                                                   size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  return Portable(static_cast<uint32_t>(wide), data, size);
}
#endif

}  // namespace

uint32_t Crc32c(std::span<const std::byte> data, uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~BySse42(~before, data.data(), data.size());
#endif
  return ~Portable(~before, data.data(), data.size());
}

}  // namespace setu::wire
