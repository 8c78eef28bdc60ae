// SPDX-License-Identifier: Apache-2.0
// The checksums by which a decode worker notices that what a push brought is not what was sent.
//
//   frame.set_crc32c(wire::Crc32cOf(frame, bytes));                     // once its place is set
//   if (wire::Crc32cOf(commit, uuid, attempt) != commit.crc32c()) ...   // DATA_LOSS
#ifndef SETU_COMMON_WIRE_CHECKSUM_H_
#define SETU_COMMON_WIRE_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "setu/worker/v1/kv_transfer.pb.h"

namespace setu::wire {

// CRC-32C (Castagnoli, RFC 3720). `before`: that of the bytes before these.
uint32_t Crc32c(std::span<const std::byte> data, uint32_t before = 0);

// Of the frame's place and its bytes, which it carries or not.
uint32_t Crc32cOf(const worker::v1::Frame& frame, std::span<const std::byte> bytes);
// Of the attempt that the commit is for and of all that it says, but for its own crc32c: a first
// token that was turned on the way would change every token after it.
uint32_t Crc32cOf(const worker::v1::Commit& commit, std::string_view uuid, uint32_t attempt);

}  // namespace setu::wire

#endif  // SETU_COMMON_WIRE_CHECKSUM_H_
