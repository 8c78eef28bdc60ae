// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "common/wire/checksum.h"

namespace setu::wire {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32cTest, KnownValues) {
  std::vector<std::byte> bytes(32, std::byte{0});
  EXPECT_EQ(Crc32c(bytes), 0x8a9136aau);
  bytes.assign(32, std::byte{0xff});
  EXPECT_EQ(Crc32c(bytes), 0x62a8ab43u);
  for (int i = 0; i < 32; ++i) bytes[i] = std::byte(i);
  EXPECT_EQ(Crc32c(bytes), 0x46dd794eu);
  for (int i = 0; i < 32; ++i) bytes[i] = std::byte(31 - i);
  EXPECT_EQ(Crc32c(bytes), 0x113fdb5cu);
}

// Eight bytes go through the CPU's instruction, the rest through the table: both know one value.
TEST(Crc32cTest, AnyLengthAndAlignment) {
  const char digits[] = "x123456789";
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(digits + 1, 9))), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(digits + 1, 7))), 0x124297eau);
  EXPECT_EQ(Crc32c({}), 0u);
}

TEST(Crc32cTest, GoesOnFromWhatCameBefore) {
  const char digits[] = "123456789";
  const std::span<const std::byte> bytes = std::as_bytes(std::span(digits, 9));
  for (size_t split = 0; split <= bytes.size(); ++split) {
    EXPECT_EQ(Crc32c(bytes.subspan(split), Crc32c(bytes.first(split))), 0xe3069283u);
  }
}

TEST(Crc32cTest, SeesEveryBit) {
  std::vector<std::byte> bytes(64, std::byte{0x5a});
  const uint32_t whole = Crc32c(bytes);
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    bytes[i / 8] ^= std::byte(1 << i % 8);
    EXPECT_NE(Crc32c(bytes), whole);
    bytes[i / 8] ^= std::byte(1 << i % 8);
  }
}

}  // namespace
}  // namespace setu::wire
