// SPDX-License-Identifier: Apache-2.0
#include "common/wire/checksum.h"

#include <string>

namespace setu::wire {
namespace {

uint32_t Crc32cOf(uint32_t number, uint32_t before) {
  std::byte bytes[4];  // little-endian
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(number >> 8 * i);
  return Crc32c(bytes, before);
}

uint32_t Crc32cOf(std::string_view text, uint32_t before) {
  return Crc32c(std::as_bytes(std::span(text)), before);
}

}  // namespace

uint32_t Crc32cOf(const worker::v1::Frame& frame, std::span<const std::byte> bytes) {
  uint32_t crc = 0;
  for (const uint32_t number : {frame.first_block(), frame.block_count(), frame.layer()}) {
    crc = Crc32cOf(number, crc);
  }
  return Crc32c(bytes, crc);
}

uint32_t Crc32cOf(const worker::v1::Commit& commit, std::string_view uuid, uint32_t attempt) {
  worker::v1::Commit rest = commit;
  rest.clear_crc32c();
  return Crc32cOf(rest.SerializeAsString(), Crc32cOf(attempt, Crc32cOf(uuid, 0)));
}

}  // namespace setu::wire
