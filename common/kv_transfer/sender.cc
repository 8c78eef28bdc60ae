// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/sender.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/status.h"
#include "common/wire/checksum.h"

namespace setu::kv_transfer {

size_t SlotBytes(const kv::KvLayout& layout) { return std::max(kFrameBytes, layout.piece_bytes()); }

std::shared_ptr<Push> GrpcPush::Start(const std::shared_ptr<grpc::Channel>& channel,
                                      const kv::KvStorage& storage, SharedStaging* staging,
                                      PushPlan plan, const Clock& clock, PushDone done) {
  std::shared_ptr<GrpcPush> push(
      new GrpcPush(channel, storage, staging, std::move(plan), clock, std::move(done)));
  push->self_ = push;
  push->rpc_->stub->async()->PushKv(&push->rpc_->context, push.get());
  push->AddHold();  // until kEnded: writes are also started from outside gRPC's callbacks
  push->StartWrite(&push->message_);
  push->StartRead(&push->answer_);
  push->StartCall();
  return push;
}

GrpcPush::GrpcPush(const std::shared_ptr<grpc::Channel>& channel, const kv::KvStorage& storage,
                   SharedStaging* staging, PushPlan plan, const Clock& clock, PushDone done)
    : rpc_(std::make_unique<Rpc>()),
      storage_(storage),
      staging_(staging),
      plan_(std::move(plan)),
      frame_blocks_(
          std::max(1, static_cast<int32_t>(kFrameBytes / plan_.fingerprint.layout.piece_bytes()))),
      clock_(clock),
      done_(std::move(done)),
      sending_since_(clock.Now()),
      final_(plan_.fingerprint.layout.layers, plan_.first_block),
      offer_(staging == nullptr ? Offer::kNone : Offer::kAsked),
      sent_(final_) {
  rpc_->stub = worker::v1::KvTransferService::NewStub(channel);
  worker::v1::Manifest& manifest = *message_.mutable_manifest();
  manifest.set_uuid(plan_.uuid);
  manifest.set_attempt(plan_.attempt);
  *manifest.mutable_fingerprint() = wire::ToProto(plan_.fingerprint);
  manifest.set_token_count(plan_.token_count);
  manifest.set_ids_digest(plan_.ids_digest);
  manifest.set_first_block(plan_.first_block);
  manifest.set_wire_version(wire::kWireVersion);
  if (staging_ != nullptr) *manifest.mutable_memory() = staging_->offer();
}

void GrpcPush::Final(int32_t layer, int32_t blocks) {
  SETU_CHECK(blocks <= static_cast<int32_t>(plan_.blocks.size()), "final blocks are in the table");
  std::lock_guard lock(mutex_);
  if (blocks <= final_[layer]) return;  // the receiver holds them
  final_[layer] = blocks;
  if (phase_ == Phase::kIdle) WakeWriter();
}

void GrpcPush::Commit(std::span<const wire::FirstToken> first_tokens) {
  worker::v1::Commit commit;
  for (const wire::FirstToken& first : first_tokens) {
    *commit.add_first_tokens() = wire::ToProto(first);
  }
  std::lock_guard lock(mutex_);
  commit_ = std::move(commit);
  if (phase_ == Phase::kIdle) WakeWriter();
}

// Also when all is written: an answer may never come.
void GrpcPush::Cancel() {
  std::lock_guard lock(mutex_);
  if (rpc_ == nullptr) return;
  rpc_->context.TryCancel();
  StopWriting();
}

// A read waits all the time, also while there is nothing to send: so an early end is heard at once.
// OnDone will say how it ended.
void GrpcPush::OnReadDone(bool ok) {
  bool waited = false;
  {
    std::lock_guard lock(mutex_);
    if (!ok) return StopWriting();
    Hear(answer_);
    waited = phase_ == Phase::kWaiting;
    if (waited) phase_ = Phase::kSending;
  }
  StartRead(&answer_);
  if (waited) SendNext();
}

// With the lock held. A slot that a receiver gives back too early costs itself the frame.
void GrpcPush::Hear(const worker::v1::PushKvResponse& answer) {
  switch (answer.part_case()) {
    case worker::v1::PushKvResponse::kMemory:
      if (offer_ != Offer::kAsked) return;
      shm_refused_ = answer.memory().refused_because();
      offer_ = shm_refused_.empty() ? Offer::kTaken : Offer::kNone;
      return;
    case worker::v1::PushKvResponse::kFramesRead:
      for (; slots_read_ < answer.frames_read() && !slots_.empty(); ++slots_read_) {
        slots_.pop_front();
      }
      return;
    case worker::v1::PushKvResponse::kCommitted:
      committed_ = answer.committed();
      return;
    case worker::v1::PushKvResponse::PART_NOT_SET:
      return;
  }
}

// With the lock held. Whoever writes now finds out afterwards; else nobody will.
void GrpcPush::StopWriting() {
  stopped_ = true;
  if (phase_ == Phase::kIdle || phase_ == Phase::kWaiting) WakeWriter();
}

// With the lock held. The alarm is due at once: it moves the work to a thread of gRPC's. Its hold
// keeps the call until that thread has let go of it.
void GrpcPush::WakeWriter() {
  if (phase_ == Phase::kIdle) sending_since_ = clock_.Now();
  phase_ = Phase::kSending;
  AddHold();
  wake_.emplace();
  wake_->Set(std::chrono::system_clock::now(), [this](bool) {
    SendNext();
    RemoveHold();
  });
}

void GrpcPush::OnWriteDone(bool ok) {
  if (!ok) {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  SendNext();
}

void GrpcPush::SendNext() {
  std::optional<Run> run;
  std::optional<Place> place;
  bool ended = false;
  {
    std::lock_guard lock(mutex_);
    run = NextRun();
    ended = stopped_ || commit_sent_;
    if (ended) {
      phase_ = Phase::kEnded;
    } else if (!run && !commit_) {
      phase_ = Phase::kIdle;
      sending_ += clock_.Now() - sending_since_;
      return;
    } else if (run) {
      place = NextPlace();
      if (!place) {
        phase_ = Phase::kWaiting;
        return;
      }
    }
  }
  if (ended) return RemoveHold();
  if (run) {
    FillFrame(*run, *place);
    StartWrite(&message_);
  } else {
    worker::v1::Commit& commit = *message_.mutable_commit();
    commit = *commit_;
    commit.set_kv_bytes(kv_bytes_);
    commit.set_crc32c(wire::Crc32cOf(commit, plan_.uuid, plan_.attempt));
    commit_sent_ = true;
    StartWriteLast(&message_, grpc::WriteOptions());
  }
}

// The run of the lowest layer that has one: that is what was computed first.
std::optional<GrpcPush::Run> GrpcPush::NextRun() {
  for (int32_t layer = 0; layer < static_cast<int32_t>(sent_.size()); ++layer) {
    const int32_t count = std::min(final_[layer] - sent_[layer], frame_blocks_);
    if (count > 0) return Run{layer, sent_[layer], count};
  }
  return std::nullopt;
}

// With the lock held; nullopt: the receiver must say something first. Other pushes never make this
// one wait: where they have all slots, its frames carry their bytes.
std::optional<GrpcPush::Place> GrpcPush::NextPlace() {
  if (offer_ == Offer::kAsked) return std::nullopt;
  if (offer_ == Offer::kNone) return Place{};
  if (slots_.size() < kSlotsPerPush) {
    if (std::optional<SharedStaging::Slot> slot = staging_->Take()) {
      slots_.push_back(*std::move(slot));
      return Place{slots_.back().offset(), slots_.back().bytes()};
    }
  }
  return slots_.empty() ? std::optional(Place{}) : std::nullopt;
}

std::span<std::byte> GrpcPush::Room(const Place& place, size_t bytes) {
  worker::v1::Frame& frame = *message_.mutable_frame();
  if (place.slot.empty()) {
    frame.mutable_data()->resize(bytes);
    return std::as_writable_bytes(std::span(*frame.mutable_data()));
  }
  frame.mutable_staged()->set_offset(place.offset);
  frame.mutable_staged()->set_length(bytes);
  shm_bytes_ += bytes;
  return place.slot.first(bytes);
}

void GrpcPush::FillFrame(const Run& run, const Place& place) {
  const size_t piece_bytes = storage_.layout().piece_bytes();
  worker::v1::Frame& frame = *message_.mutable_frame();
  frame.set_first_block(run.first_block);
  frame.set_block_count(run.count);
  frame.set_layer(run.layer);
  const std::span<std::byte> data = Room(place, run.count * piece_bytes);
  for (int32_t i = 0; i < run.count; ++i) {
    const auto piece = storage_.Piece(plan_.blocks[run.first_block + i], run.layer);
    std::memcpy(data.data() + i * piece_bytes, piece.data(), piece_bytes);
  }
  sent_[run.layer] += run.count;
  if (sent_[run.layer] == static_cast<int32_t>(plan_.blocks.size())) {
    // Slots behind the last token still hold what another prompt left there; it stays here.
    const int32_t used = plan_.token_count % storage_.layout().block_tokens;
    if (used > 0) kv::ClearSlots(storage_.layout(), used, data.last(piece_bytes));
  }
  frame.set_crc32c(wire::Crc32cOf(frame, data));
  kv_bytes_ += data.size();
}

void GrpcPush::OnDone(const grpc::Status& status) {
  const std::shared_ptr<GrpcPush> self = std::move(self_);
  PushResult result{rpc::ToAbsl(status), kv_bytes_, shm_bytes_, std::move(shm_refused_),
                    sending_ + (clock_.Now() - sending_since_)};
  if (status.ok() && !committed_) {
    result.status = absl::InternalError("the decode worker ended the push without committing it");
  }
  slots_.clear();
  std::unique_ptr<Rpc> over;
  {
    std::lock_guard lock(mutex_);
    over = std::move(rpc_);
  }
  over.reset();
  done_(result);
}

}  // namespace setu::kv_transfer
