// SPDX-License-Identifier: Apache-2.0
// What each event means to a run; sequence_run.cc has the order of things.
#include <utility>

#include "services/router/request_flow.h"
#include "services/router/sequence_run.h"

namespace setu::router {

void SequenceRun::On(const Taken& event) {
  if (decode_ == nullptr || !choices_.contains(event.choice)) return;
  heard_ = Now();  // it may have waited for this
  last_tokens_.reset();
  Written(decode_->Delivered(event.choice, event.next_index));
}

void SequenceRun::On(const Released& event) {
  if (choices_.erase(event.choice) == 0 || choices_.empty() || decode_ == nullptr) return;
  Written(decode_->StopChoice(event.choice));
}

void SequenceRun::On(absl::StatusOr<Placed>& event) {
  if (!wait_) return;  // no longer wanted
  if (!event.ok()) {
    final_ = !absl::IsAborted(event.status());
    return Lose(event.status());
  }
  placed_ = true;
  spell_ = flow_.services().readiness.spell();
  prefill_claim_ = std::move(event->prefill);
  trials_.prefill = std::move(event->trials.prefill);
  trials_.pair = std::move(event->trials.pair);
  if (event->decode.worker()) {
    decode_claim_ = std::move(event->decode);
    trials_.decode = std::move(event->trials.decode);
  }
  local_ = prefill_claim_.worker() == decode_claim_.worker();
}

void SequenceRun::On(const FromDecode& event) {
  if (event.stream != stream_ || over()) return;
  const bool speaks_in_turn = granted_ || std::holds_alternative<DecodeReady>(event.event) ||
                              std::holds_alternative<absl::Status>(event.event);
  if (!speaks_in_turn) {
    return DecodeFailed(absl::InternalError("the decode worker spoke before Ready"));
  }
  std::visit([this](const auto& e) { OnDecode(e); }, event.event);
  heard_ = Now();
  if (!over()) decode_->Read();
}

void SequenceRun::OnDecode(const DecodeReady& event) {
  if (event.attempt != attempt_) return;
  ready_ = granted_ = true;
  flow_.services().health.Worked(trials_.decode, *decode_claim_.worker());
  blocks_held_ = event.blocks_held;
  if (local_ && first_index() == 0) {
    const auto& layout = decode_claim_.worker()->description.fingerprint().kv_layout();
    flow_.Cached(blocks_held_ * layout.block_tokens());
  }
}

void SequenceRun::OnDecode(const DecodeCommitted& event) {
  committed_ = true;
  if (local_) {
    prefill_claim_.Release();
    flow_.services().dispatcher.Kick();
  }
  KvArrived(event.kv_bytes);
}

// Both ends of the transfer report it; the one that comes first counts. It proves the prefill
// worker too: all tokens may come from decode before the word of the first one.
void SequenceRun::KvArrived(uint64_t kv_bytes) {
  if (std::exchange(counted_, true)) return;
  flow_.Transferred(attempt_of_request_, kv_bytes);
  if (local_) return;
  flow_.services().health.Worked(trials_.prefill, *prefill_worker_);
  if (!trials_.pair) return;
  flow_.services().health.PairWorked(trials_.pair, *prefill_worker_, *decode_claim_.worker());
}

void SequenceRun::OnDecode(const DecodeTokens& event) {
  committed_ = true;
  const TimePoint now = Now();
  if (last_tokens_) step_ = (7 * step_ + (now - *last_tokens_)) / 8;
  last_tokens_ = now;
  if (!choices_.contains(event.choice)) return;
  const int64_t end = event.first_index + static_cast<int64_t>(event.tokens.size());
  if (end - acked_[event.choice] > kMaxUnsent) {
    return DecodeFailed(absl::InternalError("the decode worker ran too far ahead of the client"));
  }
  if (!flow_.Push(event.choice, event.first_index, event.tokens)) {
    return DecodeFailed(absl::InternalError("the decode worker left tokens out"));
  }
  flow_.services().readiness.TokenCame(spell_);
}

void SequenceRun::OnDecode(const DecodeEnded& event) {
  if (!choices_.contains(event.choice)) return;
  const int32_t generated = flow_.generated(event.choice);
  if (generated == 0 || event.generated != generated || event.reason == engine::EndReason::kNone) {
    return DecodeFailed(
        absl::InternalError("the decode worker ended a choice that has tokens to come"));
  }
  choices_.erase(event.choice);
  flow_.Finish(event.choice, event.reason);
}

void SequenceRun::OnDecode(const DecodePreempted& event) {
  if (choices_.erase(event.choice) == 0) return;
  flow_.Preempted(*this, event.choice);
}

void SequenceRun::OnDecode(const DecodeStalled& event) {
  if (event.attempt == attempt_ && ready_ && !committed_) {
    prefill_failed_ = absl::UnavailableError("the transfer of the KV stalled");
    push_failed_ = true;
  }
}

void SequenceRun::OnDecode(const DecodeDraining&) { flow_.Move(choices_); }

void SequenceRun::OnDecode(const absl::Status& end) {
  // No other worker would do better after a stalled client or a request that cannot fit.
  final_ = absl::IsAborted(end) || absl::IsInvalidArgument(end);
  const bool refused = !granted_ && absl::IsResourceExhausted(end);
  if (final_ || refused) {
    flow_.services().health.Worked(trials_.decode, *decode_claim_.worker());
    return Lose(end);
  }
  DecodeFailed(end.ok() ? absl::UnavailableError("the decode worker ended the stream early") : end);
}

void SequenceRun::On(const FromPrefill& event) {
  if (event.attempt != attempt_ || prefill_ == nullptr || over()) return;
  std::visit([this](const auto& e) { OnPrefill(e); }, event.event);
  if (!over()) prefill_->Read();
}

void SequenceRun::OnPrefill(const PrefillFirstTokens& event) {
  prefill_claim_.Release();
  flow_.services().health.Worked(trials_.prefill, *prefill_worker_);
  flow_.services().dispatcher.Kick();
  if (first_index() == 0) flow_.Cached(event.cached_tokens);
  for (const PrefillFirstToken& first : event.tokens) {
    if (!choices_.contains(first.choice)) continue;
    if (!flow_.Push(first.choice, first_index(), {&first.token, 1})) {
      const absl::Status why = absl::InternalError("the prefill worker left tokens out");
      flow_.services().health.Failed(trials_.prefill, *prefill_worker_, why);
      return Lose(why);
    }
    if (first.end == engine::EndReason::kNone) continue;
    choices_.erase(first.choice);
    flow_.Finish(first.choice, first.end);
  }
}

void SequenceRun::OnPrefill(const PrefillPushed& event) {
  committed_ = true;
  KvArrived(event.kv_bytes);
  flow_.Pushed(attempt_of_request_, event.tail);
}

void SequenceRun::OnPrefill(const PrefillPushFailed&) { push_failed_ = true; }

void SequenceRun::OnPrefill(const absl::Status& end) {
  if (committed_) return;
  if (absl::IsInvalidArgument(end)) {
    final_ = true;
    return Lose(end);
  }
  prefill_failed_ = end.ok() ? absl::InternalError("the prefill worker ended early") : end;
}

}  // namespace setu::router
