// SPDX-License-Identifier: Apache-2.0
#include "common/wire/checksum.h"

#include <gtest/gtest.h>

namespace setu::wire {
namespace {

// Fixed formats: peers may be of different builds.
TEST(ChecksumTest, OfAFrameIsThatOfItsNumbersAndTheBytes) {
  worker::v1::Frame frame;
  frame.set_first_block(0x01020304);
  frame.set_block_count(2);
  frame.set_layer(3);
  frame.set_data("is not read");
  frame.set_crc32c(99);
  const char bytes[] = "123456789";
  const char same[] =
      "\4\3\2\1\2\0\0\0\3\0\0\0"
      "123456789";
  EXPECT_EQ(Crc32cOf(frame, std::as_bytes(std::span(bytes, 9))),
            Crc32c(std::as_bytes(std::span(same, sizeof same - 1))));
}

TEST(ChecksumTest, OfACommitIsThatOfItsAttemptAndItsOtherFields) {
  worker::v1::Commit commit;
  commit.set_kv_bytes(5);
  commit.set_crc32c(99);
  const char same[] = "uu\7\0\0\0\x10\5";
  EXPECT_EQ(Crc32cOf(commit, "uu", 7), Crc32c(std::as_bytes(std::span(same, sizeof same - 1))));
}

}  // namespace
}  // namespace setu::wire
