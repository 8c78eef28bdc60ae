// SPDX-License-Identifier: Apache-2.0
// The one transfer that the target kv_frames expects, for its seeds too: two blocks of two tokens.
#ifndef SETU_TESTS_FUZZ_KV_SETTING_H_
#define SETU_TESTS_FUZZ_KV_SETTING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/engine/model_runner.h"
#include "common/kv/kv_storage.h"
#include "common/wire/checksum.h"
#include "common/wire/convert.h"
#include "setu/worker/v1/kv_transfer.pb.h"

namespace setu::fuzz {

inline constexpr kv::KvLayout kKvLayout = {
    .block_tokens = 2, .layers = 2, .kv_heads = 1, .head_dim = 2, .type = kernels::KvType::kF16};
inline constexpr int32_t kKvTokens = 3;
inline constexpr kv::BlockId kKvTable[] = {3, 1};
inline constexpr uint64_t kKvDigest = 99;
inline constexpr int32_t kKvVocabulary = 100;

inline worker::v1::Fingerprint KvFingerprint(bool mixing) {
  engine::RunnerFingerprint fingerprint;
  fingerprint.model = 11;
  fingerprint.tokenizer = 12;
  fingerprint.numerics = "f32/kv-f16/r1";
  fingerprint.layout = kKvLayout;
  fingerprint.allow_mixed_numerics = mixing;
  return wire::ToProto(fingerprint);
}

// Of memory that the peer has offered: one slot, and what lies there.
inline constexpr size_t kStagedBytes = 256;
inline std::byte StagedByte(uint64_t offset) { return static_cast<std::byte>(offset % 251); }

inline void Sign(worker::v1::Frame& frame, const std::string& data) {
  frame.set_crc32c(wire::Crc32cOf(frame, std::as_bytes(std::span(data))));
}

inline void Sign(worker::v1::Commit& commit) { commit.set_crc32c(wire::Crc32cOf(commit, "u", 1)); }

}  // namespace setu::fuzz

#endif  // SETU_TESTS_FUZZ_KV_SETTING_H_
