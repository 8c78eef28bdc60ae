// SPDX-License-Identifier: Apache-2.0
// Whatever a peer sends on the KV channel, only the blocks of its own lease are written, only with
// what its frames say or have staged, and a commit stands only where every piece has come. An input
// is options, then the loop's steps and messages: a byte, and for a message its length and its
// bytes.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/kv_transfer/peer_staging.h"
#include "common/kv_transfer/receiver.h"
#include "common/kv_transfer/shared_staging.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/kv_setting.h"
#include "tests/support/fake_clock.h"

namespace setu::kv_transfer {
namespace {

using worker::v1::Frame;
using worker::v1::PushKvRequest;

constexpr std::byte kUntouched{0xA5};

class Stream final : public PushStream {
 public:
  void Proceed() override { reads_ = true; }
  void End(const absl::Status&) override { ended_ = true; }
  void Wait() { reads_ = false; }
  bool reads() const { return reads_ && !ended_; }

 private:
  bool reads_ = true;
  bool ended_ = false;
};

// A decode worker with one expected attempt, and the stream that pushes to it.
class Peer {
 public:
  explicit Peer(fuzz::Input& input)
      : first_block_(static_cast<int32_t>(input.Below(2))), mixing_(input.Below(2) == 1) {
    for (int32_t block = 0; block < storage_->blocks(); ++block) {
      for (int32_t layer = 0; layer < fuzz::kKvLayout.layers; ++layer) {
        std::ranges::fill(storage_->Piece(block, layer), kUntouched);
      }
    }
    for (size_t at = 0; at < slot_.bytes().size(); ++at) {
      slot_.bytes()[at] = fuzz::StagedByte(slot_.offset() + at);
    }
    receiver_.emplace(fuzz::KvFingerprint(mixing_), fuzz::kKvVocabulary, *storage_, clock_,
                      [this](TransferEvent event) { Hear(std::move(event)); });
    transfer_ = receiver_->Expect({.uuid = "u",
                                   .attempt = 1,
                                   .owner = 7,
                                   .token_count = fuzz::kKvTokens,
                                   .ids_digest = fuzz::kKvDigest,
                                   .first_block = first_block_});
  }

  void Step(fuzz::Input& input) {
    switch (input.Below(6)) {
      case 0:
        if (started_ && !leased_) {
          leased_ = true;
          transfer_->Bind(fuzz::kKvTable);
        }
        return;
      case 1:
        if (leased_ && transfer_->Withdraw()) leased_ = false;
        return;
      case 2:
        transfer_->Lost(stream_.get(), absl::CancelledError("the sender has gone"));
        stream_->End(absl::CancelledError("the sender has gone"));
        return;
      case 3:  // with its right checksum
        return Receive(Message(input), /*sign=*/true);
      default:
        return Receive(Message(input), /*sign=*/false);
    }
  }

  void CheckStorage() const {
    for (int32_t block = 0; block < storage_->blocks(); ++block) {
      for (int32_t layer = 0; layer < fuzz::kKvLayout.layers; ++layer) {
        const std::span<const std::byte> piece = std::as_const(*storage_).Piece(block, layer);
        const auto written = written_.find({block, layer});
        if (written == written_.end()) {
          SETU_CHECK(std::ranges::count(piece, kUntouched) == std::ssize(piece),
                     "what was not sent is not written");
        } else if (!mixed_) {
          SETU_CHECK(std::ranges::equal(piece, std::as_bytes(std::span(written->second))),
                     "what was sent is what is there");
        }
      }
    }
  }

 private:
  static std::string Message(fuzz::Input& input) {
    const size_t bytes = input.Below(256);
    return std::string(input.Text(bytes));
  }

  void Hear(TransferEvent event) {
    if (std::holds_alternative<TransferStarted>(event)) {
      SETU_CHECK(!started_, "a transfer starts once");
      started_ = true;
      return;
    }
    SETU_CHECK(!over_, "a transfer ends once");
    over_ = true;
    if (const auto* committed = std::get_if<TransferCommitted>(&event)) {
      const size_t blocks = std::size(fuzz::kKvTable) - first_block_;
      SETU_CHECK(written_.size() == blocks * fuzz::kKvLayout.layers, "a commit has every piece");
      for (const wire::FirstToken& first : committed->first_tokens) {
        SETU_CHECK(first.token.id >= 0 && first.token.id < fuzz::kKvVocabulary, "ids are known");
      }
      mixed_ = committed->mixed;
    }
  }

  // As the service takes a message: an error ends the stream, and nothing is read before Proceed.
  void Receive(const std::string& bytes, bool sign) {
    PushKvRequest request;
    if (!stream_->reads() || !request.ParseFromString(bytes)) return;
    PushKvRequest again;
    const std::string written = request.SerializeAsString();
    SETU_CHECK(again.ParseFromString(written) && again.SerializeAsString() == written,
               "a message is written as it was read");
    if (sign && request.has_frame()) Sign(*request.mutable_frame());
    if (sign && request.has_commit()) fuzz::Sign(*request.mutable_commit());
    const absl::Status taken = Handle(request);
    if (taken.ok()) return;
    transfer_->Lost(stream_.get(), taken);
    stream_->End(taken);
  }

  void Sign(Frame& frame) {
    std::string data = frame.data();
    if (frame.has_staged()) {
      const auto bytes = memory_.Fetch(frame.staged());
      if (bytes.ok()) data.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }
    fuzz::Sign(frame, data);
  }

  absl::Status Handle(const PushKvRequest& request) {
    switch (request.part_case()) {
      case PushKvRequest::kManifest: {
        if (begun_) return absl::InvalidArgumentError("a second manifest");
        const auto found = receiver_->Find(request.manifest());
        if (!found.ok()) return found.status();
        const absl::Status fits = transfer_->Begin(request.manifest(), stream_);
        begun_ = fits.ok();
        mixed_ = mixing_;
        if (begun_) stream_->Wait();
        return fits;
      }
      case PushKvRequest::kFrame:
        return begun_ ? Take(request.frame()) : absl::InvalidArgumentError("no manifest");
      case PushKvRequest::kCommit:
        if (begun_) stream_->Wait();
        return begun_ ? transfer_->Commit(request.commit())
                      : absl::InvalidArgumentError("no manifest");
      case PushKvRequest::PART_NOT_SET:
        break;
    }
    return absl::InvalidArgumentError("nothing");
  }

  absl::Status Take(const Frame& frame) {
    if (!frame.has_staged()) return Took(frame, frame.data(), transfer_->Take(frame));
    const worker::v1::Staged& staged = frame.staged();
    const auto bytes = memory_.Fetch(staged);
    if (!bytes.ok()) return bytes.status();
    SETU_CHECK(bytes->size() == staged.length(), "all of it is fetched");
    for (size_t at = 0; at < bytes->size(); ++at) {
      SETU_CHECK(staged.offset() + at < slot_.offset() ||
                     (*bytes)[at] == fuzz::StagedByte(staged.offset() + at),
                 "what is fetched is what lies there");
    }
    const std::string data(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    return Took(frame, data, transfer_->TakeStaged(frame, *bytes));
  }

  absl::Status Took(const Frame& frame, const std::string& data, const absl::Status& taken) {
    if (!taken.ok()) return taken;
    SETU_CHECK(leased_, "nothing is written without a lease");
    SETU_CHECK(frame.block_count() > 0 && data.size() % frame.block_count() == 0,
               "a frame is whole pieces");
    const size_t bytes = data.size() / frame.block_count();
    for (uint32_t i = 0; i < frame.block_count(); ++i) {
      const uint32_t place = frame.first_block() + i;
      SETU_CHECK(place >= static_cast<uint32_t>(first_block_) && place < std::size(fuzz::kKvTable),
                 "a frame's blocks are of its lease");
      const bool fresh =
          written_
              .try_emplace({fuzz::kKvTable[place], frame.layer()}, data.substr(i * bytes, bytes))
              .second;
      SETU_CHECK(fresh, "a piece is taken once");
    }
    return absl::OkStatus();
  }

  const int32_t first_block_;
  const bool mixing_;
  testing::FakeClock clock_;
  std::unique_ptr<kv::KvStorage> storage_ = *kv::KvStorage::Create(fuzz::kKvLayout, 5);
  // What the peer has offered, and this worker has taken.
  const std::unique_ptr<SharedStaging> staging_ =
      *SharedStaging::Create(fuzz::kStagedBytes, fuzz::kStagedBytes);
  const SharedStaging::Slot slot_ = *staging_->Take();
  PeerStaging memory_ = *PeerStaging::Open(staging_->offer());
  std::optional<Receiver> receiver_;
  std::shared_ptr<Transfer> transfer_;
  std::shared_ptr<Stream> stream_ = std::make_shared<Stream>();
  std::map<std::pair<int32_t, uint32_t>, std::string> written_;  // (block, layer)
  bool begun_ = false, started_ = false, leased_ = false, over_ = false;
  bool mixed_ = false;  // values are converted as they are written
};

}  // namespace
}  // namespace setu::kv_transfer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer no_lines;
  setu::fuzz::Input input(data, size);
  setu::kv_transfer::Peer peer(input);
  while (!input.empty()) {
    peer.Step(input);
    peer.CheckStorage();
  }
  return 0;
}
