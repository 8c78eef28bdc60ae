// SPDX-License-Identifier: Apache-2.0
// KV that is sent: from the manifest to the commit, and what that turns into. loop_prompts.cc has
// what is known or computed here, loop.cc the rest.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/decode/loop.h"

namespace setu::decode {

void Loop::On(kv_transfer::TransferStarted& event) {
  Request* request = Find(event.owner, event.attempt, Request::State::kGranted);
  if (request == nullptr) return;
  request->state = Request::State::kReceiving;
  request->heard = clock_.Now();
  request->lease = request->grant.Take(request->grant.shape().prompt);
  const std::span<const kv::BlockId> known = request->known.blocks();
  std::vector<kv::BlockId> table(known.begin(), known.end());
  table.insert(table.end(), request->lease.blocks().begin(), request->lease.blocks().end());
  request->transfer->Bind(table);
}

void Loop::On(kv_transfer::TransferCommitted& event) {
  Request* request = Find(event.owner, event.attempt, Request::State::kReceiving);
  if (request == nullptr) return;
  const absl::Status fits = CheckFirstTokens(*request, event.first_tokens);
  request->transfer->Finish(fits);
  if (!fits.ok()) {
    CountFailed(*request, counts_.transfers_invalid);
    return StartOver(*request);
  }
  counts_.kv_bytes_received += event.kv_bytes;
  counts_.kv_bytes_by_shm += event.shm_bytes;
  request->kv_bytes = event.kv_bytes;
  request->mixed = event.mixed;
  request->stream->SendCommitted(request->attempt, request->kv_bytes);
  Start(*request, event.first_tokens);
}

void Loop::On(kv_transfer::TransferFailed& event) {
  Request* request = Find(event.owner, event.attempt, Request::State::kReceiving);
  if (request == nullptr) return;
  // A sender that goes away tells the router why, or is missed there: often all choices ended on
  // their first token.
  if (!absl::IsCancelled(event.status)) {
    CountFailed(*request, absl::IsDataLoss(event.status) ? counts_.transfers_corrupt
                                                         : counts_.transfers_invalid);
    logger_.Warning(absl::StrCat("transfer failed uuid=", request->sequence.uuid,
                                 " attempt=", event.attempt, ": ", event.status.message()));
  }
  StartOver(*request);
}

void Loop::On(kv_transfer::TransferWithdrawn& event) {
  const auto place = requests_.find(event.owner);
  if (place != requests_.end()) StartOver(*place->second);
}

// A transfer fails once, for the first reason: where it is none any more it has failed before, and
// where nothing is heard of it, it has stalled.
void Loop::CountFailed(const Request& request, uint64_t& reason) {
  if (request.state == Request::State::kReceiving && request.heard) ++reason;
}

bool Loop::Expect(Request& request) {
  request.transfer =
      receiver_.Expect({.uuid = request.sequence.uuid,
                        .attempt = request.attempt,
                        .owner = request.id,
                        .token_count = static_cast<int32_t>(request.sequence.ids.size()),
                        .ids_digest = wire::IdsDigest(request.sequence.ids),
                        .first_block = request.known.size()});
  return request.transfer != nullptr;
}

void Loop::StartOver(Request& request) {
  if (request.stream == nullptr) {
    requests_.erase(request.id);
    return;
  }
  request.grant.PutBack(std::move(request.lease));
  request.state = Request::State::kGranted;
  const bool next = request.next_attempt.has_value();
  if (next) {
    request.attempt = *std::exchange(request.next_attempt, std::nullopt);
    request.heard.reset();
  }
  if (!Expect(request)) {
    return Close(request, absl::AlreadyExistsError("another stream holds this attempt"),
                 counts_.failed);
  }
  if (next) request.stream->SendReady(request.attempt, request.known.size());
}

void Loop::Start(Request& request, const std::vector<wire::FirstToken>& first_tokens) {
  request.state = Request::State::kRunning;
  request.transfer.reset();
  request.heard.reset();
  Remember(request);
  for (const wire::FirstToken& first : first_tokens) {
    if (!request.stopped.contains(first.choice)) Join(request, first);
  }
  if (!request.running.empty()) request.running.front()->lease = std::move(request.lease);
  request.lease.Release();
  request.grant.Release();
  CloseWhereDone(request);
}

void Loop::Join(Request& request, const wire::FirstToken& first) {
  const int32_t index = GeneratedBefore(request);
  request.stream->SendToken(first.choice, index, first.token);
  if (first.end != engine::EndReason::kNone) {
    return request.stream->SendEnded(first.choice, first.end, index + 1);
  }
  Sequence& sequence = Fork(request, first, runner_.storage(), room_.pool());
  PauseWhereAhead(sequence);
  scheduler_.Join(sequence);
}

}  // namespace setu::decode
