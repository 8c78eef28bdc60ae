// SPDX-License-Identifier: Apache-2.0
// Room promised to requests whose KV has not arrived, so that no prompt is computed for nothing:
// promised blocks + held blocks never exceed the pool. Everything gives itself back. Pure policy.
//
//   Room room(pool, {.block_tokens = 16});
//   SETU_ASSIGN_OR_RETURN(Grant grant, room.Promise({.tokens = 100, .output_tokens = 64}));
//   kv::BlockLease lease = grant.Take(grant.shape().prompt);   // the KV arrives
//   Grant part = grant.Split(grant.shape().output);            // one choice's budget
#ifndef SETU_SERVICES_DECODE_GRANT_H_
#define SETU_SERVICES_DECODE_GRANT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/kv/block_pool.h"

namespace setu::decode {

struct RoomLimits {
  int32_t block_tokens = 16;
  int32_t max_sequences = 64;         // promised and running, each choice is one
  int32_t max_sequence_tokens = 0;    // prompt + answer of one sequence
  int32_t grant_output_tokens = 256;  // promised per choice; beyond it a sequence grows
  int32_t resume_watermark = 8;       // blocks that a resumed sequence must leave unpromised
};

// What a request needs to start.
struct Demand {
  int32_t tokens = 0;         // whose KV will arrive: prompt and what was generated before
  int32_t output_tokens = 0;  // that may still be generated, per choice
  int32_t choices = 1;
  int32_t held_blocks = 0;  // of the tokens', by the one who asks: they need not be promised
  bool resumed = false;
  bool all_output = false;  // is promised, however much; then it is not preempted
};

// Blocks of a grant: `prompt` once, for what is not held; `output` for each choice; and `copies`,
// the block that a further choice needs for its own end of the prompt (0 where the prompt fills its
// last block).
struct GrantShape {
  int32_t prompt = 0;
  int32_t output = 0;
  int32_t copies = 0;
  bool all_output = false;  // as demanded
};

class Room;

// Blocks and sequences promised to one owner; the room must outlive it.
class Grant {
 public:
  Grant() = default;
  Grant(Grant&& other) noexcept;
  Grant& operator=(Grant&& other) noexcept;
  ~Grant() { Release(); }

  const GrantShape& shape() const { return shape_; }
  int32_t blocks() const { return blocks_; }
  // Promised blocks become held ones. count <= blocks().
  kv::BlockLease Take(int32_t count);
  // Held blocks become promised ones again. They must not be shared.
  void PutBack(kv::BlockLease lease);
  // One sequence with `blocks` of its promised blocks.
  Grant Split(int32_t blocks);
  void Release();

 private:
  friend class Room;
  Grant(Room* room, const GrantShape& shape, int32_t blocks, int32_t sequences);
  Room* room_ = nullptr;
  GrantShape shape_;
  int32_t blocks_ = 0;
  int32_t sequences_ = 0;
};

class Room {
 public:
  Room(kv::BlockPool& pool, const RoomLimits& limits);

  // INVALID_ARGUMENT where the demand can never fit, RESOURCE_EXHAUSTED where it does not fit now.
  absl::StatusOr<Grant> Promise(const Demand& demand);
  // A block beyond every promise; nullopt where all are held or promised.
  std::optional<kv::BlockLease> TakeUnpromised();

  int32_t unpromised() const { return pool_.free() - promised_; }
  int32_t promised() const { return promised_; }
  int32_t sequences() const { return sequences_; }
  const RoomLimits& limits() const { return limits_; }
  kv::BlockPool& pool() { return pool_; }

 private:
  friend class Grant;
  kv::BlockPool& pool_;
  const RoomLimits limits_;
  int32_t promised_ = 0;   // blocks
  int32_t sequences_ = 0;  // in all grants, split or not
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_GRANT_H_
