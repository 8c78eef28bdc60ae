// SPDX-License-Identifier: Apache-2.0
#include "services/decode/grant.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace setu::decode {
namespace {

GrantShape ShapeOf(const Demand& demand, const RoomLimits& limits) {
  const int32_t budget = demand.all_output
                             ? demand.output_tokens
                             : std::min(demand.output_tokens, limits.grant_output_tokens);
  GrantShape shape;
  const int32_t prompt = kv::BlocksFor(demand.tokens, limits.block_tokens);
  shape.prompt = prompt - demand.held_blocks;
  shape.output = kv::BlocksFor(int64_t{demand.tokens} + budget, limits.block_tokens) - prompt;
  shape.copies = demand.tokens % limits.block_tokens == 0 ? 0 : 1;
  shape.all_output = demand.all_output;
  return shape;
}

absl::Status CheckFitsEver(const Demand& demand, int64_t blocks, int32_t total,
                           const RoomLimits& limits) {
  const int64_t tokens = int64_t{demand.tokens} + demand.output_tokens;
  if (tokens > limits.max_sequence_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt and max_tokens are ", tokens, " tokens, this worker holds at most ",
                     limits.max_sequence_tokens, "; lower max_tokens or shorten the prompt"));
  }
  if (demand.choices > limits.max_sequences) {
    return absl::InvalidArgumentError(absl::StrCat(demand.choices,
                                                   " choices, this worker runs at most ",
                                                   limits.max_sequences, " sequences; lower n"));
  }
  if (blocks + demand.held_blocks > total) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request needs ", blocks + demand.held_blocks, " KV blocks to start, this worker has ",
        total, "; lower n or max_tokens, or raise --kv-memory"));
  }
  return absl::OkStatus();
}

}  // namespace

Grant::Grant(Room* room, const GrantShape& shape, int32_t blocks, int32_t sequences)
    : room_(room), shape_(shape), blocks_(blocks), sequences_(sequences) {}

Grant::Grant(Grant&& other) noexcept { *this = std::move(other); }

Grant& Grant::operator=(Grant&& other) noexcept {
  if (this == &other) return *this;
  Release();
  room_ = std::exchange(other.room_, nullptr);
  shape_ = other.shape_;
  blocks_ = std::exchange(other.blocks_, 0);
  sequences_ = std::exchange(other.sequences_, 0);
  return *this;
}

kv::BlockLease Grant::Take(int32_t count) {
  SETU_CHECK(count <= blocks_, "a grant gives no more than it promises");
  std::optional<kv::BlockLease> lease = room_->pool_.Take(count);
  SETU_CHECK(lease.has_value(), "promised blocks are free blocks");
  blocks_ -= count;
  room_->promised_ -= count;
  return *std::move(lease);
}

void Grant::PutBack(kv::BlockLease lease) {
  const int32_t count = lease.size();
  lease.Release();
  blocks_ += count;
  room_->promised_ += count;
  SETU_CHECK(room_->unpromised() >= 0, "blocks put back are free again");
}

Grant Grant::Split(int32_t blocks) {
  SETU_CHECK(blocks <= blocks_ && sequences_ >= 1, "a part is no larger than its grant");
  blocks_ -= blocks;
  --sequences_;
  return Grant(room_, shape_, blocks, 1);
}

void Grant::Release() {
  if (room_ == nullptr) return;
  room_->promised_ -= std::exchange(blocks_, 0);
  room_->sequences_ -= std::exchange(sequences_, 0);
  room_ = nullptr;
}

Room::Room(kv::BlockPool& pool, const RoomLimits& limits) : pool_(pool), limits_(limits) {}

absl::StatusOr<Grant> Room::Promise(const Demand& demand) {
  const GrantShape shape = ShapeOf(demand, limits_);
  const int64_t blocks = shape.prompt + int64_t{demand.choices} * shape.output +
                         int64_t{demand.choices - 1} * shape.copies;
  if (absl::Status fits = CheckFitsEver(demand, blocks, pool_.total(), limits_); !fits.ok()) {
    return fits;
  }
  if (sequences_ + demand.choices > limits_.max_sequences) {
    return absl::ResourceExhaustedError(
        absl::StrCat(sequences_, " sequences run or were granted, --max-running is ",
                     limits_.max_sequences, "; try another worker or later"));
  }
  // An idle pool owes nobody a reserve: whatever can ever fit is admitted there.
  const bool idle = unpromised() + demand.held_blocks == pool_.total();
  const int32_t reserve = demand.resumed && !idle ? limits_.resume_watermark : 0;
  if (blocks + reserve > unpromised()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the request needs ", blocks, " KV blocks, and ", reserve, " to spare, ",
                     unpromised(), " are free; try another worker or later"));
  }
  promised_ += static_cast<int32_t>(blocks);
  sequences_ += demand.choices;
  return Grant(this, shape, static_cast<int32_t>(blocks), demand.choices);
}

std::optional<kv::BlockLease> Room::TakeUnpromised() {
  if (unpromised() < 1) return std::nullopt;
  return pool_.Take(1);
}

}  // namespace setu::decode
