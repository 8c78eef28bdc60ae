// SPDX-License-Identifier: Apache-2.0
// Between the worker protocol's messages and the types of the engine. What arrives is checked:
// FromProto gives INVALID_ARGUMENT naming the field; the workers trust nothing else about a peer.
#ifndef SETU_COMMON_WIRE_CONVERT_H_
#define SETU_COMMON_WIRE_CONVERT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/engine/runner.h"
#include "common/engine/sampling_params.h"
#include "setu/worker/v1/prefill.pb.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::wire {

inline constexpr uint32_t kWireVersion = 3;
inline constexpr uint32_t kKvLayoutVersion = 3;
inline constexpr int kMaxChoices = 16;  // of one sequence
inline constexpr int kMaxEndIds = 1024;
inline constexpr int kMaxLogitBias = 1024;

worker::v1::SamplingParams ToProto(const engine::SamplingParams& params);
absl::StatusOr<engine::SamplingParams> FromProto(const worker::v1::SamplingParams& params,
                                                 int32_t vocabulary);

worker::v1::SampledToken ToProto(const engine::SampledToken& token);
absl::StatusOr<engine::SampledToken> FromProto(const worker::v1::SampledToken& token,
                                               int32_t vocabulary);

worker::v1::EndReason ToProto(engine::EndReason reason);
engine::EndReason FromProto(worker::v1::EndReason reason);

// What prefill sampled for one choice; `end` where that token ends it.
struct FirstToken {
  uint32_t choice = 0;
  engine::SampledToken token;
  engine::EndReason end = engine::EndReason::kNone;
};
worker::v1::FirstToken ToProto(const FirstToken& first);
absl::StatusOr<FirstToken> FromProto(const worker::v1::FirstToken& first, int32_t vocabulary);

worker::v1::Fingerprint ToProto(const engine::RunnerFingerprint& fingerprint);
// kAllowed: numeric path, KV type and digest of the logits may differ.
enum class Mixing : uint8_t { kRefused, kAllowed };
// Allowed where both workers allow it.
Mixing MixingOf(const worker::v1::Fingerprint& ours, const worker::v1::Fingerprint& theirs);
// Empty where both fit; else a sentence that names the first part that differs and both values.
std::string Difference(const worker::v1::Fingerprint& ours, const worker::v1::Fingerprint& theirs,
                       Mixing mixing);
// Equal bits come from both, whatever Difference lets pass.
bool SameNumerics(const worker::v1::Fingerprint& ours, const worker::v1::Fingerprint& theirs);
// The type of K and V that the numeric path names. FAILED_PRECONDITION where it names none that is
// known here, or one of another size than the layout says.
absl::StatusOr<kernels::KvType> KvTypeOf(const worker::v1::Fingerprint& fingerprint);

// A request's state as a worker holds it.
struct Sequence {
  std::string uuid;
  std::vector<engine::TokenId> ids;  // prompt, then generated
  int32_t prompt_length = 0;
  engine::SamplingParams sampling;
  std::vector<uint32_t> choices;  // never empty; one where anything was generated
  uint64_t cache_salt = 0;        // of the tenant
};
worker::v1::SequenceState ToProto(const Sequence& sequence);
absl::StatusOr<Sequence> FromProto(const worker::v1::SequenceState& state, int32_t vocabulary);

// FNV-1a over the ids: both sides of a transfer name the same prompt.
uint64_t IdsDigest(std::span<const engine::TokenId> ids);

}  // namespace setu::wire

#endif  // SETU_COMMON_WIRE_CONVERT_H_
