// SPDX-License-Identifier: Apache-2.0
#include "services/router/sequence_run.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "services/router/request_flow.h"

namespace setu::router {
namespace {

// Decode is told of progress in steps of so many tokens.
constexpr int32_t kAckTokens = 32;

// What a wait for workers leaves of the time to the deadline, at most, so that its answer reaches
// the client: by then the client's own clock ends the call, and why and where it stood are lost.
constexpr Duration kTimeToAnswer = std::chrono::milliseconds(100);

TimePoint EndOfWait(TimePoint now, TimePoint deadline) {
  return deadline - std::min(kTimeToAnswer, std::max(deadline - now, Duration::zero()) / 20);
}

}  // namespace

SequenceRun::SequenceRun(RequestFlow& flow, std::set<uint32_t> choices, bool resumed)
    : flow_(flow),
      choices_(std::move(choices)),
      resumed_(resumed),
      mailbox_(flow.services().loop) {}

rpc::Task<void> SequenceRun::Run(std::shared_ptr<RequestFlow> flow,
                                 std::unique_ptr<SequenceRun> run) {
  co_await run->GetGrant();
  co_await run->GetKv();
  co_await run->TakeTokens();
  run->Close();
  flow->Left(*run, run->lost_.value_or(absl::OkStatus()), run->final_);
}

// Until a decode worker promised room, or the run is over.
rpc::Task<void> SequenceRun::GetGrant() {
  while (!over() && !ready_) {
    co_await GetPlace(nullptr);
    if (!over()) co_await OpenStream();
  }
  if (!over()) flow_.Granted(*this, *decode_claim_.worker(), blocks_held_);
}

rpc::Task<void> SequenceRun::GetPlace(std::shared_ptr<Worker> granted) {
  Order order = OrderFor(std::move(granted));
  placed_ = false;
  Dispatcher& dispatcher = flow_.services().dispatcher;
  if (resumed_ || order.granted) {
    wait_.emplace(dispatcher.Resume(std::move(order)));
  } else if (std::optional<Dispatcher::Wait> wait = dispatcher.Admit(std::move(order))) {
    wait_.emplace(*std::move(wait));
  } else {
    final_ = true;
    Lose(absl::ResourceExhaustedError("the queue is full; retry later"));
  }
  while (!over() && !placed_ && !committed_) co_await Next(flow_.arrival().deadline);
  wait_.reset();
}

Order SequenceRun::OrderFor(std::shared_ptr<Worker> granted) {
  Order order;
  order.share = flow_.arrival().share;
  order.size = SizeOf(flow_.request(), flow_.generated(*choices_.begin()),
                      static_cast<int32_t>(choices_.size()));
  order.size.promise_all = flow_.LostBlocksTooOften(choices_);
  order.prompt = PromptChains(flow_.IdsOf(choices_), flow_.arrival().cache_salt);
  order.size.salt = std::hash<std::string>()(flow_.arrival().uuid) + stream_;
  order.granted = std::move(granted);
  order.deadline = EndOfWait(Now(), flow_.arrival().deadline);
  order.done = [this](absl::StatusOr<Placed> result) { mailbox_.Put(std::move(result)); };
  return order;
}

// Until the worker promised room, refused (then nothing is held), or the run is over.
rpc::Task<void> SequenceRun::OpenStream() {
  flow_.Placed();
  sequence_ = flow_.StateOf(choices_);
  for (uint32_t choice : choices_) acked_[choice] = first_index();
  ++attempt_;
  auto on_event = [this, stream = ++stream_](DecodeEvent event) {
    mailbox_.Put(FromDecode{stream, std::move(event)});
  };
  decode_ =
      std::make_unique<DecodeClient>(flow_.services().calls, decode_claim_.worker()->address,
                                     CallFor(), flow_.services().tokenizer.vocabulary(), on_event);
  Written(decode_->Open(sequence_, {.attempt = attempt_,
                                    .prefill_here = local_,
                                    .promise_all = flow_.LostBlocksTooOften(choices_)}));
  decode_->Read();
  co_await AwaitReady();
  if (!lost_ || !absl::IsResourceExhausted(*lost_)) co_return;
  lost_.reset();
  decode_.reset();
  flow_.services().health.Full(*decode_claim_.worker(), options().avoid_full);
  prefill_claim_.Release();
  decode_claim_.Release();
  trials_ = {};
  resumed_ = true;  // it has been first in the queue
}

rpc::Task<void> SequenceRun::AwaitReady() {
  const TimePoint deadline = Now() + options().grant_timeout;
  while (!over() && !ready_ && !committed_) {
    const Turn turn = co_await Next(deadline);
    if (turn == Turn::kExpired) {
      DecodeFailed(absl::DeadlineExceededError("no answer to a wish for room"));
    }
  }
}

// Until decode holds the prompt's KV, or the run is over.
rpc::Task<void> SequenceRun::GetKv() {
  if (over()) co_return;
  if (local_) {
    const Worker& worker = *decode_claim_.worker();
    attempt_of_request_ = flow_.AttemptBegan(worker, worker);
    ++flow_.services().counts.local_prefills;
  } else {
    StartPrefill();
  }
  while (!over() && !committed_) {
    if (prefill_failed_) {
      co_await Retry();
    } else {
      co_await Next(flow_.arrival().deadline);
    }
  }
  flow_.AttemptEnded(attempt_of_request_, lost_.value_or(absl::OkStatus()));
}

void SequenceRun::StartPrefill() {
  push_failed_ = false;
  prefill_worker_ = prefill_claim_.worker();
  attempt_of_request_ = flow_.AttemptBegan(*decode_claim_.worker(), *prefill_worker_);
  flow_.TakesPart(*prefill_worker_);
  PrefillOrder order;
  order.attempt = attempt_;
  order.decode_address = decode_claim_.worker()->address;
  order.decode_incarnation = decode_claim_.worker()->description.incarnation();
  order.blocks_held = blocks_held_;
  order.resumed = resumed_;
  auto on_event = [this, attempt = attempt_](PrefillEvent event) {
    mailbox_.Put(FromPrefill{attempt, std::move(event)});
  };
  prefill_ = std::make_unique<PrefillClient>(flow_.services().calls, prefill_worker_->address,
                                             CallFor(), flow_.services().tokenizer.vocabulary(),
                                             sequence_, order, on_event);
  prefill_->Read();
}

// Another attempt under the same grant. It repeats the first tokens, which are dropped by index.
rpc::Task<void> SequenceRun::Retry() {
  const absl::Status why = *prefill_failed_;
  flow_.AttemptEnded(attempt_of_request_, why);
  prefill_failed_.reset();
  prefill_.reset();
  prefill_claim_.Release();
  WorkerHealth& health = flow_.services().health;
  const bool full = absl::IsResourceExhausted(why) && !push_failed_;
  if (full) {
    health.Worked(trials_.prefill, *prefill_worker_);
    health.Full(*prefill_worker_, options().avoid_full);
  } else if (push_failed_) {
    health.PairFailed(trials_.pair, *prefill_worker_, *decode_claim_.worker(), why);
  } else {
    health.Failed(trials_.prefill, *prefill_worker_, why);
  }
  if (!full && !flow_.MayTryAgain(choices_, why)) co_return;
  ++flow_.services().counts.retries;
  ++attempt_;
  ready_ = false;
  Written(decode_->Retry(attempt_));
  co_await AwaitReady();
  if (!over() && !committed_) co_await GetPlace(decode_claim_.worker());
  if (!over() && !committed_) StartPrefill();
}

rpc::Task<void> SequenceRun::TakeTokens() {
  heard_ = Now();
  while (!over()) {
    const Turn turn = co_await Next(SilenceDeadline());
    if (turn == Turn::kExpired) {
      DecodeFailed(absl::UnavailableError("the decode worker fell silent"));
    }
  }
}

// A worker that waits for the client is not silent.
TimePoint SequenceRun::SilenceDeadline() const {
  const bool may_send = std::any_of(choices_.begin(), choices_.end(), [this](uint32_t choice) {
    return flow_.generated(choice) - acked_.at(choice) < kMaxUnsent;
  });
  if (!may_send) return flow_.arrival().deadline;
  return heard_ + std::max<Duration>(options().silence, options().silence_steps * step_);
}

rpc::Task<SequenceRun::Turn> SequenceRun::Next(TimePoint deadline) {
  const TimePoint last = flow_.arrival().deadline;
  const TimePoint until = std::min(deadline, last);
  std::optional<Event> event = co_await mailbox_.Next(until);
  if (event) {
    std::visit([this](auto& e) { On(e); }, *event);
  } else if (until < last) {
    co_return Turn::kExpired;
  } else {
    flow_.End(absl::DeadlineExceededError("the request's deadline passed"));
  }
  co_return over() ? Turn::kOver : Turn::kTook;
}

void SequenceRun::Close() {
  prefill_.reset();
  decode_.reset();
  prefill_claim_.Release();
  decode_claim_.Release();
  trials_ = {};
  flow_.services().dispatcher.Kick();
}

bool SequenceRun::over() const { return lost_ || choices_.empty() || flow_.ended(); }

int32_t SequenceRun::first_index() const {
  return static_cast<int32_t>(sequence_.ids.size()) - sequence_.prompt_length;
}

void SequenceRun::Lose(const absl::Status& why) {
  if (!lost_) lost_ = why;
}

void SequenceRun::DecodeFailed(const absl::Status& why) {
  flow_.services().health.Failed(trials_.decode, *decode_claim_.worker(), why);
  Lose(why);
}

void SequenceRun::Written(bool written) {
  if (!written) DecodeFailed(absl::UnavailableError("the decode worker does not read"));
}

TimePoint SequenceRun::Now() const { return flow_.services().loop.clock().Now(); }

const FlowOptions& SequenceRun::options() const { return flow_.services().options; }

rpc::CallOptions SequenceRun::CallFor() const {
  return rpc::CallOptions{flow_.arrival().deadline, flow_.arrival().metadata};
}

void SequenceRun::Took(uint32_t choice, int32_t next_index) {
  auto acked = acked_.find(choice);
  if (acked == acked_.end() || next_index - acked->second < kAckTokens) return;
  acked->second = next_index;
  mailbox_.Put(Taken{choice, next_index});
}

}  // namespace setu::router
