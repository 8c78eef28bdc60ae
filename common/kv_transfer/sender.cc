// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/sender.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/status.h"

namespace setu::kv_transfer {

std::shared_ptr<Push> GrpcPush::Start(const std::shared_ptr<grpc::Channel>& channel,
                                      const kv::KvStorage& storage, PushPlan plan,
                                      const Clock& clock, PushDone done) {
  std::shared_ptr<GrpcPush> push(
      new GrpcPush(channel, storage, std::move(plan), clock, std::move(done)));
  push->self_ = push;
  push->rpc_->stub->async()->PushKv(&push->rpc_->context, &push->response_, push.get());
  push->AddHold();  // until kEnded: writes are also started from outside gRPC's callbacks
  push->StartWrite(&push->message_);
  push->StartCall();
  return push;
}

GrpcPush::GrpcPush(const std::shared_ptr<grpc::Channel>& channel, const kv::KvStorage& storage,
                   PushPlan plan, const Clock& clock, PushDone done)
    : rpc_(std::make_unique<Rpc>()),
      storage_(storage),
      plan_(std::move(plan)),
      frame_blocks_(
          std::max(1, static_cast<int32_t>(kFrameBytes / plan_.fingerprint.layout.piece_bytes()))),
      clock_(clock),
      done_(std::move(done)),
      sending_since_(clock.Now()),
      final_(plan_.fingerprint.layout.layers, plan_.first_block),
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
}

void GrpcPush::Final(int32_t layer, int32_t blocks) {
  SETU_CHECK(blocks <= static_cast<int32_t>(plan_.blocks.size()), "final blocks are in the table");
  std::lock_guard lock(mutex_);
  if (blocks <= final_[layer]) return;  // the receiver holds them
  final_[layer] = blocks;
  WakeWriter();
}

void GrpcPush::Commit(std::span<const wire::FirstToken> first_tokens) {
  worker::v1::Commit commit;
  for (const wire::FirstToken& first : first_tokens) {
    *commit.add_first_tokens() = wire::ToProto(first);
  }
  std::lock_guard lock(mutex_);
  commit_ = std::move(commit);
  WakeWriter();
}

void GrpcPush::Cancel() {
  std::lock_guard lock(mutex_);
  if (phase_ == Phase::kEnded) return;
  rpc_->context.TryCancel();
  StopWriting();
}

// A receiver says nothing before its end, not even headers: these come with the end or in its
// place, also while there is nothing to send. OnDone will say how it ended.
void GrpcPush::OnReadInitialMetadataDone(bool) {
  std::lock_guard lock(mutex_);
  StopWriting();
}

// With the lock held. Whoever writes now finds out afterwards; else nobody will.
void GrpcPush::StopWriting() {
  stopped_ = true;
  WakeWriter();
}

// With the lock held. The alarm is due at once: it moves the work to a thread of gRPC's. Its hold
// keeps the call until that thread has let go of it.
void GrpcPush::WakeWriter() {
  if (phase_ != Phase::kIdle) return;
  phase_ = Phase::kSending;
  sending_since_ = clock_.Now();
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
    }
  }
  if (ended) return RemoveHold();
  if (run) {
    FillFrame(*run);
    StartWrite(&message_);
  } else {
    *message_.mutable_commit() = *commit_;
    message_.mutable_commit()->set_kv_bytes(kv_bytes_);
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

void GrpcPush::FillFrame(const Run& run) {
  const size_t piece_bytes = storage_.layout().piece_bytes();
  worker::v1::Frame& frame = *message_.mutable_frame();
  frame.set_first_block(run.first_block);
  frame.set_block_count(run.count);
  frame.set_layer(run.layer);
  std::string& data = *frame.mutable_data();
  data.resize(run.count * piece_bytes);
  for (int32_t i = 0; i < run.count; ++i) {
    const auto piece = storage_.Piece(plan_.blocks[run.first_block + i], run.layer);
    std::memcpy(data.data() + i * piece_bytes, piece.data(), piece_bytes);
  }
  sent_[run.layer] += run.count;
  if (sent_[run.layer] == static_cast<int32_t>(plan_.blocks.size())) {
    // Slots behind the last token still hold what another prompt left there; it stays here.
    const int32_t used = plan_.token_count % storage_.layout().block_tokens;
    const auto last_piece = std::as_writable_bytes(std::span(data)).last(piece_bytes);
    if (used > 0) kv::ClearSlots(storage_.layout(), used, last_piece);
  }
  frame.set_crc32c(wire::Crc32c(std::as_bytes(std::span(data))));
  kv_bytes_ += data.size();
}

void GrpcPush::OnDone(const grpc::Status& status) {
  const std::shared_ptr<GrpcPush> self = std::move(self_);
  PushResult result{rpc::ToAbsl(status), kv_bytes_, sending_ + (clock_.Now() - sending_since_)};
  if (status.ok() && !commit_sent_) {
    result.status = absl::InternalError("the decode worker ended the push before its commit");
  }
  rpc_.reset();
  done_(result);
}

}  // namespace setu::kv_transfer
