// SPDX-License-Identifier: Apache-2.0
#include "common/kv_transfer/receiver.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/wire/checksum.h"
#include "kernels/convert_kv.h"

namespace setu::kv_transfer {
namespace {

// FAILED_PRECONDITION unless both are equal.
template <typename Value>
absl::Status Same(const char* field, const Value& expected, const Value& sent) {
  if (expected == sent) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("manifest.", field, " is ", sent, ", this worker expects ", expected));
}

absl::Status Intact(const char* part, uint32_t sent, uint32_t arrived) {
  if (sent == arrived) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(part, ".crc32c is ", absl::Hex(sent),
                                          ", that of what arrived is ", absl::Hex(arrived)));
}

absl::Status OutOfBounds(const char* field, uint64_t value, uint64_t limit) {
  return absl::InvalidArgumentError(
      absl::StrCat("frame.", field, " is ", value, ", must be below ", limit));
}

// Workers of one numeric path have one type; only another path's name says another.
absl::StatusOr<kernels::KvType> TypeSent(const Transfer::Context& context,
                                         const worker::v1::Fingerprint& sender) {
  if (context.fingerprint.numerics() == sender.numerics()) return context.storage.layout().type;
  return wire::KvTypeOf(sender);
}

}  // namespace

Transfer::Transfer(const Context& context, Expectation expectation)
    : context_(context), expectation_(std::move(expectation)) {}

void Transfer::Bind(std::span<const kv::BlockId> blocks) {
  const kv::KvLayout& layout = context_.storage.layout();
  SETU_CHECK(static_cast<int32_t>(blocks.size()) ==
                 kv::BlocksFor(expectation_.token_count, layout.block_tokens),
             "the table covers the tokens of the manifest");
  std::shared_ptr<PushStream> stream;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kStarted) return;
    state_ = State::kReceiving;
    blocks_.assign(blocks.begin(), blocks.end());
    present_.assign(blocks.size() * layout.layers, false);
    stream = stream_;
  }
  stream->Proceed();
}

void Transfer::Finish(const absl::Status& status) {
  std::shared_ptr<PushStream> stream;
  {
    std::lock_guard lock(mutex_);
    state_ = State::kOver;
    stream = std::move(stream_);
  }
  if (stream) stream->End(status);
}

bool Transfer::Withdraw() {
  std::shared_ptr<PushStream> stream;
  bool copying;
  {
    std::lock_guard lock(mutex_);
    state_ = State::kOver;
    copying = copying_;
    if (copying) after_copy_ = TransferWithdrawn{expectation_.owner, expectation_.attempt};
    stream = std::move(stream_);
  }
  if (stream) stream->End(absl::AbortedError("decode has withdrawn this attempt"));
  return !copying;
}

TimePoint Transfer::last_arrival() const {
  std::lock_guard lock(mutex_);
  return last_arrival_;
}

bool Transfer::over() const {
  std::lock_guard lock(mutex_);
  return state_ == State::kOver;
}

absl::Status Transfer::Begin(const worker::v1::Manifest& manifest,
                             std::shared_ptr<PushStream> stream) {
  SETU_RETURN_IF_ERROR(CheckManifest(manifest));
  SETU_ASSIGN_OR_RETURN(const kernels::KvType type, TypeSent(context_, manifest.fingerprint()));
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kOver) return absl::AbortedError("decode has withdrawn this attempt");
    if (state_ != State::kExpected) {
      return absl::AlreadyExistsError(
          absl::StrCat("attempt ", expectation_.attempt, " is being sent by another stream"));
    }
    state_ = State::kStarted;
    last_arrival_ = context_.clock.Now();
    stream_ = std::move(stream);
    sent_ = context_.storage.layout();
    sent_.type = type;
    mixed_ = !wire::SameNumerics(context_.fingerprint, manifest.fingerprint());
  }
  context_.sink(TransferStarted{expectation_.owner, expectation_.attempt});
  return absl::OkStatus();
}

absl::Status Transfer::Take(const worker::v1::Frame& frame) {
  return Copy(frame, std::as_bytes(std::span(frame.data())));
}

absl::Status Transfer::TakeStaged(const worker::v1::Frame& frame,
                                  std::span<const std::byte> bytes) {
  SETU_RETURN_IF_ERROR(Copy(frame, bytes));
  shm_bytes_ += bytes.size();
  return absl::OkStatus();
}

absl::Status Transfer::Copy(const worker::v1::Frame& frame, std::span<const std::byte> bytes) {
  SETU_RETURN_IF_ERROR(CheckFrame(frame, bytes));
  if (!EnterCopy()) return absl::AbortedError("decode has withdrawn this attempt");
  for (uint32_t i = 0; i < frame.block_count(); ++i) {
    const uint32_t block = frame.first_block() + i;
    Put(bytes.data() + i * sent_.piece_bytes(),
        context_.storage.Piece(blocks_[block], frame.layer()));
    present_[size_t{block} * context_.storage.layout().layers + frame.layer()] = true;
  }
  received_bytes_ += bytes.size();
  LeaveCopy();
  return absl::OkStatus();
}

absl::Status Transfer::Commit(const worker::v1::Commit& commit) {
  SETU_RETURN_IF_ERROR(Intact("commit", commit.crc32c(),
                              wire::Crc32cOf(commit, expectation_.uuid, expectation_.attempt)));
  // Every piece was taken once at most, so the sum tells whether all are there.
  const uint64_t expected = (blocks_.size() - expectation_.first_block) * sent_.block_bytes();
  if (received_bytes_ != expected || commit.kv_bytes() != expected) {
    return absl::DataLossError(absl::StrCat("commit of ", commit.kv_bytes(), " bytes after ",
                                            received_bytes_, ", ", expected, " were to come"));
  }
  TransferCommitted event{expectation_.owner, expectation_.attempt, {},
                          expected,           shm_bytes_,           mixed_};
  for (const worker::v1::FirstToken& first : commit.first_tokens()) {
    SETU_ASSIGN_OR_RETURN(wire::FirstToken token, wire::FromProto(first, context_.vocabulary));
    event.first_tokens.push_back(std::move(token));
  }
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kReceiving) return absl::AbortedError("decode has withdrawn this attempt");
    state_ = State::kCommitted;
  }
  context_.sink(std::move(event));
  return absl::OkStatus();
}

void Transfer::Lost(const PushStream* stream, const absl::Status& status) {
  TransferFailed event{expectation_.owner, expectation_.attempt, status};
  {
    std::lock_guard lock(mutex_);
    // A commit stands, whatever becomes of the stream that waits for its answer.
    if (stream_.get() != stream || state_ == State::kCommitted) return;
    state_ = State::kOver;
    stream_ = nullptr;
    if (copying_) {
      after_copy_ = std::move(event);
      return;
    }
  }
  context_.sink(std::move(event));
}

absl::Status Transfer::CheckManifest(const worker::v1::Manifest& manifest) const {
  SETU_RETURN_IF_ERROR(Same("wire_version", wire::kWireVersion, manifest.wire_version()));
  const wire::Mixing mixing = wire::MixingOf(context_.fingerprint, manifest.fingerprint());
  const std::string difference =
      wire::Difference(context_.fingerprint, manifest.fingerprint(), mixing);
  if (!difference.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("the workers do not fit: ", difference));
  }
  const auto tokens = static_cast<uint32_t>(expectation_.token_count);
  SETU_RETURN_IF_ERROR(Same("token_count", tokens, manifest.token_count()));
  SETU_RETURN_IF_ERROR(Same("ids_digest", expectation_.ids_digest, manifest.ids_digest()));
  return Same("first_block", static_cast<uint32_t>(expectation_.first_block),
              manifest.first_block());
}

absl::Status Transfer::CheckFrame(const worker::v1::Frame& frame,
                                  std::span<const std::byte> data) const {
  SETU_RETURN_IF_ERROR(Intact("frame", frame.crc32c(), wire::Crc32cOf(frame, data)));
  if (frame.block_count() == 0) return absl::InvalidArgumentError("frame.block_count is 0");
  const auto first = static_cast<uint32_t>(expectation_.first_block);
  if (frame.first_block() < first) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame.first_block is ", frame.first_block(), ", must be at least ", first));
  }
  const uint64_t end = uint64_t{frame.first_block()} + frame.block_count();
  if (end > blocks_.size())
    return OutOfBounds("first_block + block_count", end, blocks_.size() + 1);
  const auto layers = static_cast<uint32_t>(sent_.layers);
  if (frame.layer() >= layers) return OutOfBounds("layer", frame.layer(), layers);
  const uint64_t bytes = frame.block_count() * sent_.piece_bytes();
  if (data.size() != bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the frame has ", data.size(), " bytes, ",
                                                   frame.block_count(), " blocks of a layer have ",
                                                   bytes));
  }
  for (uint64_t block = frame.first_block(); block < end; ++block) {
    if (present_[block * layers + frame.layer()]) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", block, " of layer ", frame.layer(), " is sent twice"));
    }
  }
  return absl::OkStatus();
}

// Another type's values are rounded to ours, as if they had been computed here.
void Transfer::Put(const std::byte* sent, std::span<std::byte> piece) const {
  const kv::KvLayout& layout = context_.storage.layout();
  if (sent_.type == layout.type) {
    std::memcpy(piece.data(), sent, piece.size());
    return;
  }
  kernels::ConvertKv({.kv_heads = layout.kv_heads,
                      .head_dim = layout.head_dim,
                      .block_tokens = layout.block_tokens},
                     sent_.type, sent, layout.type, piece.data());
}

bool Transfer::EnterCopy() {
  std::lock_guard lock(mutex_);
  copying_ = state_ == State::kReceiving;
  return copying_;
}

void Transfer::LeaveCopy() {
  std::optional<TransferEvent> event;
  {
    std::lock_guard lock(mutex_);
    copying_ = false;
    last_arrival_ = context_.clock.Now();
    event = std::exchange(after_copy_, std::nullopt);
  }
  if (event) context_.sink(*std::move(event));
}

Receiver::Receiver(worker::v1::Fingerprint fingerprint, int32_t vocabulary, kv::KvStorage& storage,
                   const Clock& clock, TransferSink sink)
    : context_{std::move(fingerprint), vocabulary, storage, clock, std::move(sink)} {}

std::shared_ptr<Transfer> Receiver::Expect(Expectation expectation) {
  std::lock_guard lock(mutex_);
  std::erase_if(transfers_, [](const auto& entry) {
    const std::shared_ptr<Transfer> transfer = entry.second.lock();
    return transfer == nullptr || transfer->over();
  });
  const std::pair key(expectation.uuid, expectation.attempt);
  const auto [place, fresh] = transfers_.try_emplace(key);
  if (!fresh) return nullptr;
  auto transfer = std::make_shared<Transfer>(context_, std::move(expectation));
  place->second = transfer;
  return transfer;
}

absl::StatusOr<std::shared_ptr<Transfer>> Receiver::Find(const worker::v1::Manifest& manifest) {
  std::lock_guard lock(mutex_);
  const auto place = transfers_.find({manifest.uuid(), manifest.attempt()});
  std::shared_ptr<Transfer> transfer = place == transfers_.end() ? nullptr : place->second.lock();
  if (transfer == nullptr || transfer->over()) {
    return absl::NotFoundError(absl::StrCat("attempt ", manifest.attempt(), " of this uuid has no ",
                                            "room here: it is older, or its stream has ended"));
  }
  return transfer;
}

}  // namespace setu::kv_transfer
