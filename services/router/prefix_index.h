// SPDX-License-Identifier: Apache-2.0
// Which worker knows which blocks, as their load streams tell it. Exact up to what is on its way: a
// worker that says to know less than it was thought to costs time, never a token. Pure.
//
//   PrefixIndex index;
//   PrefixIndex::Member member = index.Join();                 // a worker comes into sight
//   if (!member.Apply(report.prefixes())) ...watch it anew...  // changes are missing
//   const std::vector<int32_t> known = index.Known(chain);     // [slots] blocks, by member.slot()
#ifndef SETU_SERVICES_ROUTER_PREFIX_INDEX_H_
#define SETU_SERVICES_ROUTER_PREFIX_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "common/kv/prefix_chain.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::router {

class PrefixIndex {
 public:
  // One worker's part of the index, taken out when this dies. The index must outlive it.
  class Member {
   public:
    Member() = default;
    Member(Member&& other) noexcept { *this = std::move(other); }
    Member& operator=(Member&& other) noexcept;
    ~Member() { Leave(); }

    // False where changes are missing: nothing is known of it then, until a snapshot comes.
    bool Apply(const worker::v1::PrefixChanges& changes);
    size_t slot() const { return slot_; }

   private:
    friend class PrefixIndex;
    Member(PrefixIndex* index, size_t slot) : index_(index), slot_(slot) {}
    void Leave();
    PrefixIndex* index_ = nullptr;
    size_t slot_ = 0;
  };

  Member Join();
  // Blocks at the start of the chain that each member knows: by slot, those of no member 0.
  std::vector<int32_t> Known(std::span<const kv::BlockHash> chain) const;

  size_t slots() const { return members_.size(); }
  size_t blocks() const { return holders_.size(); }  // that any member knows

 private:
  using Slots = absl::InlinedVector<uint64_t, 1>;  // a bit for each slot
  struct Joined {
    absl::flat_hash_set<kv::BlockHash> blocks;
    uint64_t changes = 0;  // of the worker, that are in here
  };
  void Add(size_t slot, kv::BlockHash hash);
  void Remove(size_t slot, kv::BlockHash hash);
  void Clear(size_t slot);

  absl::flat_hash_map<kv::BlockHash, Slots> holders_;
  std::vector<Joined> members_;  // by slot
  std::vector<size_t> left_;     // slots to give out again
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_PREFIX_INDEX_H_
