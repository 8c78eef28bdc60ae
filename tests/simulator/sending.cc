// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/sending.h"

#include <algorithm>
#include <utility>

#include "common/wire/checksum.h"

namespace setu::simulator {
namespace {

constexpr int32_t kFrameBlocks = 3;                          // so that most prompts take several
constexpr Duration kPause = std::chrono::microseconds(100);  // between two parts

}  // namespace

std::shared_ptr<Sending> Sending::Start(std::shared_ptr<Pipe> pipe, DecodeNode& decode,
                                        const kv::KvStorage& storage, kv_transfer::PushPlan plan,
                                        kv_transfer::PushDone done) {
  std::shared_ptr<Sending> push(
      new Sending(std::move(pipe), decode, storage, std::move(plan), std::move(done)));
  push->Begin();
  return push;
}

Sending::Sending(std::shared_ptr<Pipe> pipe, DecodeNode& decode, const kv::KvStorage& storage,
                 kv_transfer::PushPlan plan, kv_transfer::PushDone done)
    : pipe_(std::move(pipe)),
      decode_(decode),
      storage_(storage),
      plan_(std::move(plan)),
      done_(std::move(done)),
      session_(std::make_shared<std::shared_ptr<PushSession>>()),
      final_(plan_.fingerprint.layout.layers, plan_.first_block),
      sent_(final_) {}

void Sending::Begin() {
  const auto weak = weak_from_this();
  const auto ended = [weak](const absl::Status& status) {
    if (const auto push = weak.lock()) push->Ended(status);
  };
  pipe_->OnEndAtCaller(ended);
  pipe_->SendUp(
      "push", 0,
      [pipe = pipe_, &decode = decode_, session = session_, ended] {
        *session = decode.AcceptPush(pipe, [pipe, ended](const absl::Status& status) {
          pipe->SendDown(
              "end", 0,
              [pipe, ended, status] {
                pipe->Close();
                ended(status);
              },
              Pipe::Kind::kControl);
        });
      },
      Pipe::Kind::kControl);
  worker::v1::PushKvRequest part;
  worker::v1::Manifest& manifest = *part.mutable_manifest();
  manifest.set_uuid(plan_.uuid);
  manifest.set_attempt(plan_.attempt);
  *manifest.mutable_fingerprint() = wire::ToProto(plan_.fingerprint);
  manifest.set_token_count(plan_.token_count);
  manifest.set_ids_digest(plan_.ids_digest);
  manifest.set_first_block(plan_.first_block);
  manifest.set_wire_version(wire::kWireVersion);
  Send("manifest", std::move(part));
}

void Sending::Final(int32_t layer, int32_t blocks) {
  AtTheEndOfTheTurn([layer, blocks](Sending& push) {
    push.final_[layer] = std::max(push.final_[layer], blocks);
    push.SendNext();
  });
}

void Sending::Commit(std::span<const wire::FirstToken> first_tokens) {
  worker::v1::Commit commit;
  for (const wire::FirstToken& first : first_tokens) {
    *commit.add_first_tokens() = wire::ToProto(first);
  }
  AtTheEndOfTheTurn([commit](Sending& push) {
    push.commit_ = commit;
    push.SendNext();
  });
}

// What is computed is there when its time has passed.
template <typename Event>
void Sending::AtTheEndOfTheTurn(Event event) {
  Node& node = pipe_->caller();
  node.At(node.Now(), [weak = weak_from_this(), event] {
    if (const auto push = weak.lock()) event(*push);
  });
}

void Sending::Cancel() {
  pipe_->Cancel();
  Node& node = pipe_->caller();
  node.At(node.Now() + kPause, [weak = weak_from_this()] {
    if (const auto push = weak.lock()) push->Ended(absl::CancelledError("the push was cancelled"));
  });
}

void Sending::SendNext() {
  if (on_its_way_ || all_sent_ || !done_) return;
  worker::v1::PushKvRequest part;
  if (NextFrame(*part.mutable_frame())) return Send("frame", std::move(part));
  if (!commit_) return;
  all_sent_ = true;
  worker::v1::Commit& commit = *part.mutable_commit();
  commit = *commit_;
  commit.set_kv_bytes(kv_bytes_);
  commit.set_crc32c(wire::Crc32cOf(commit, plan_.uuid, plan_.attempt));
  Send("commit", std::move(part));
}

bool Sending::NextFrame(worker::v1::Frame& frame) {
  for (int32_t layer = 0; layer < std::ssize(sent_); ++layer) {
    const int32_t count = std::min(final_[layer] - sent_[layer], kFrameBlocks);
    if (count <= 0) continue;
    frame.set_layer(layer);
    frame.set_first_block(sent_[layer]);
    frame.set_block_count(count);
    for (int32_t i = 0; i < count; ++i) {
      const auto piece = storage_.Piece(plan_.blocks[sent_[layer] + i], layer);
      frame.mutable_data()->append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    frame.set_crc32c(wire::Crc32cOf(frame, std::as_bytes(std::span(frame.data()))));
    sent_[layer] += count;
    kv_bytes_ += frame.data().size();
    return true;
  }
  return false;
}

void Sending::Send(const char* what, worker::v1::PushKvRequest part) {
  on_its_way_ = true;
  pipe_->SendUp(what, part.ByteSizeLong(), [session = session_, part = std::move(part)] {
    if (*session != nullptr) (*session)->Take(part);
  });
  Node& node = pipe_->caller();
  node.At(node.Now() + kPause, [weak = weak_from_this()] {
    const auto push = weak.lock();
    if (push == nullptr) return;
    push->on_its_way_ = false;
    push->SendNext();
  });
}

void Sending::Ended(const absl::Status& status) {
  const bool early = status.ok() && !all_sent_;
  if (done_) {
    std::exchange(
        done_, nullptr)({.status = early ? absl::InternalError("ended before its commit") : status,
                         .kv_bytes = kv_bytes_});
  }
}

}  // namespace setu::simulator
