// SPDX-License-Identifier: Apache-2.0
// The decode side of a KV transfer without its RPC: which attempts may send, what their frames must
// look like, and when a block may be written. Two parties meet in a Transfer: the step loop, which
// owns the blocks, and the stream of one PushKv call, which brings the bytes.
//
//   Receiver receiver(fingerprint, vocabulary, storage, clock, sink);
//   auto transfer = receiver.Expect({...});            // the loop: this attempt may send
//   transfer->Bind(lease.blocks());                    // after TransferStarted
//   transfer->Finish(absl::OkStatus());                // after TransferCommitted
//   if (transfer->Withdraw()) lease.Release();         // else after TransferWithdrawn
//
// A transfer lives as long as the loop holds it; a stream that comes later finds nothing.
#ifndef SETU_COMMON_KV_TRANSFER_RECEIVER_H_
#define SETU_COMMON_KV_TRANSFER_RECEIVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/kv/kv_storage.h"
#include "common/wire/convert.h"
#include "setu/worker/v1/kv_transfer.pb.h"

namespace setu::kv_transfer {

// One attempt that may send, as the loop expects it.
struct Expectation {
  std::string uuid;
  uint32_t attempt = 0;
  uint64_t owner = 0;  // the loop's own name for the request; comes back in events
  int32_t token_count = 0;
  uint64_t ids_digest = 0;
  int32_t first_block = 0;  // those before it are held here already
};

// What the loop hears, from gRPC threads: at most one Started, then one of the others.
struct TransferStarted {  // the manifest fits; the stream waits for Bind
  uint64_t owner = 0;
  uint32_t attempt = 0;
};
struct TransferCommitted {  // all bytes are in their blocks; the stream waits for Finish
  uint64_t owner = 0;
  uint32_t attempt = 0;
  std::vector<wire::FirstToken> first_tokens;
  uint64_t kv_bytes = 0;   // as sent,
  uint64_t shm_bytes = 0;  // of them, through shared memory
  bool mixed = false;      // of another numeric path than this worker's
};
struct TransferFailed {  // nothing writes any more; the attempt may be expected anew
  uint64_t owner = 0;
  uint32_t attempt = 0;
  absl::Status status;
};
struct TransferWithdrawn {  // nothing writes any more; only where Withdraw() gave false
  uint64_t owner = 0;
  uint32_t attempt = 0;
};
using TransferEvent =
    std::variant<TransferStarted, TransferCommitted, TransferFailed, TransferWithdrawn>;
// Must not block. At most two events wait at a time for each transfer that the loop holds.
using TransferSink = std::function<void(TransferEvent)>;

// The RPC that brings an attempt's frames, as its transfer steers it. Any thread; after End neither
// does anything.
class PushStream {
 public:
  virtual ~PushStream() = default;
  virtual void Proceed() = 0;
  virtual void End(const absl::Status& status) = 0;
};

// One attempt's KV. The loop's calls and the stream's may run at the same time.
class Transfer {
 public:
  struct Context {  // what all transfers of a receiver share
    worker::v1::Fingerprint fingerprint;
    int32_t vocabulary;
    kv::KvStorage& storage;
    const Clock& clock;
    TransferSink sink;
  };
  Transfer(const Context& context, Expectation expectation);

  // --- The loop ---
  // The table of all tokens. Those of its blocks that take the KV, from first_block on: leased by
  // the caller until Committed, Failed or Withdrawn, or until Withdraw() gave true.
  void Bind(std::span<const kv::BlockId> blocks);
  // Answers a commit.
  void Finish(const absl::Status& status);
  // No block is written from now on, except by the one copy that may be in progress: true where
  // there is none. The stream ends ABORTED.
  bool Withdraw();
  // When the manifest or the last frame came; long ago where none did.
  TimePoint last_arrival() const;
  // Failed, withdrawn or finished: the attempt may be expected anew.
  bool over() const;

  // --- The stream, one call at a time; but for Lost, which may come at any time ---
  // FAILED_PRECONDITION says what does not fit, ALREADY_EXISTS where another stream sends.
  absl::Status Begin(const worker::v1::Manifest& manifest, std::shared_ptr<PushStream> stream);
  // INVALID_ARGUMENT: outside the table or held already, wrong size, sent twice. DATA_LOSS: wrong
  // checksum.
  absl::Status Take(const worker::v1::Frame& frame);
  // The same with the bytes of a staged frame, which nobody else can write any more.
  absl::Status TakeStaged(const worker::v1::Frame& frame, std::span<const std::byte> bytes);
  // DATA_LOSS where pieces are missing.
  absl::Status Commit(const worker::v1::Commit& commit);
  // `stream` is over, or what it sent was refused. Nothing where another one sends.
  void Lost(const PushStream* stream, const absl::Status& status);

 private:
  enum class State { kExpected, kStarted, kReceiving, kCommitted, kOver };
  absl::Status CheckManifest(const worker::v1::Manifest& manifest) const;
  absl::Status CheckFrame(const worker::v1::Frame& frame, std::span<const std::byte> bytes) const;
  absl::Status Copy(const worker::v1::Frame& frame, std::span<const std::byte> bytes);
  bool EnterCopy();
  void LeaveCopy();
  void Put(const std::byte* sent, std::span<std::byte> piece) const;

  const Context& context_;
  const Expectation expectation_;

  // The stream's alone, after Begin.
  kv::KvLayout sent_;  // of the frames' pieces: ours but for the type
  bool mixed_ = false;
  // The stream's alone, after Bind.
  std::vector<kv::BlockId> blocks_;  // [table]
  std::vector<bool> present_;        // [table, layers]
  uint64_t received_bytes_ = 0;
  uint64_t shm_bytes_ = 0;

  mutable std::mutex mutex_;  // held for a few instructions; never while copying or calling out
  State state_ = State::kExpected;
  bool copying_ = false;
  std::optional<TransferEvent> after_copy_;  // held back by a copy in progress
  TimePoint last_arrival_{};
  std::shared_ptr<PushStream> stream_;
};

// Finds the transfer that a manifest names.
class Receiver {
 public:
  // `storage`, `clock` must outlive the receiver, and the receiver every transfer.
  Receiver(worker::v1::Fingerprint fingerprint, int32_t vocabulary, kv::KvStorage& storage,
           const Clock& clock, TransferSink sink);

  // The loop holds one transfer per (uuid, attempt) at a time; nullptr where it holds one already.
  std::shared_ptr<Transfer> Expect(Expectation expectation);
  // NOT_FOUND where nobody holds that attempt: it is older, or its Decode stream has ended.
  absl::StatusOr<std::shared_ptr<Transfer>> Find(const worker::v1::Manifest& manifest);

 private:
  const Transfer::Context context_;
  std::mutex mutex_;
  std::map<std::pair<std::string, uint32_t>, std::weak_ptr<Transfer>> transfers_;
};

}  // namespace setu::kv_transfer

#endif  // SETU_COMMON_KV_TRANSFER_RECEIVER_H_
