// SPDX-License-Identifier: Apache-2.0
#include "services/router/prefix_index.h"

#include <algorithm>
#include <bit>

namespace setu::router {
namespace {

constexpr size_t kBits = 64;

}  // namespace

PrefixIndex::Member PrefixIndex::Join() {
  if (left_.empty()) {
    members_.emplace_back();
    return {this, members_.size() - 1};
  }
  const size_t slot = left_.back();
  left_.pop_back();
  return {this, slot};
}

PrefixIndex::Member& PrefixIndex::Member::operator=(Member&& other) noexcept {
  if (this == &other) return *this;
  Leave();
  index_ = std::exchange(other.index_, nullptr);
  slot_ = other.slot_;
  return *this;
}

void PrefixIndex::Member::Leave() {
  if (index_ == nullptr) return;
  index_->Clear(slot_);
  index_->left_.push_back(slot_);
  index_ = nullptr;
}

bool PrefixIndex::Member::Apply(const worker::v1::PrefixChanges& changes) {
  Joined& joined = index_->members_[slot_];
  if (changes.snapshot() || changes.since() != joined.changes) index_->Clear(slot_);
  if (!changes.snapshot() && changes.since() != joined.changes) return false;
  for (const kv::BlockHash hash : changes.known()) index_->Add(slot_, hash);
  for (const kv::BlockHash hash : changes.forgotten()) index_->Remove(slot_, hash);
  joined.changes = changes.until();
  return true;
}

// Block by block, those that knew all before and know this one too.
std::vector<int32_t> PrefixIndex::Known(std::span<const kv::BlockHash> chain) const {
  std::vector<int32_t> known(members_.size(), 0);
  Slots left((members_.size() + kBits - 1) / kBits, ~uint64_t{0});
  for (const kv::BlockHash hash : chain) {
    const auto holders = holders_.find(hash);
    if (holders == holders_.end()) break;
    bool any = false;
    for (size_t word = 0; word < left.size(); ++word) {
      left[word] &= word < holders->second.size() ? holders->second[word] : 0;
      any = any || left[word] != 0;
      for (uint64_t bits = left[word]; bits != 0; bits &= bits - 1) {
        ++known[word * kBits + std::countr_zero(bits)];
      }
    }
    if (!any) break;
  }
  return known;
}

void PrefixIndex::Add(size_t slot, kv::BlockHash hash) {
  if (!members_[slot].blocks.insert(hash).second) return;
  Slots& slots = holders_[hash];
  if (slots.size() <= slot / kBits) slots.resize(slot / kBits + 1, 0);
  slots[slot / kBits] |= uint64_t{1} << slot % kBits;
}

void PrefixIndex::Remove(size_t slot, kv::BlockHash hash) {
  if (members_[slot].blocks.erase(hash) == 0) return;
  const auto holders = holders_.find(hash);
  holders->second[slot / kBits] &= ~(uint64_t{1} << slot % kBits);
  const auto is_zero = [](uint64_t word) { return word == 0; };
  if (std::all_of(holders->second.begin(), holders->second.end(), is_zero)) {
    holders_.erase(holders);
  }
}

void PrefixIndex::Clear(size_t slot) {
  const absl::flat_hash_set<kv::BlockHash> blocks(members_[slot].blocks);
  for (const kv::BlockHash hash : blocks) Remove(slot, hash);
  members_[slot].changes = 0;
}

}  // namespace setu::router
