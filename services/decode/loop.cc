// SPDX-License-Identifier: Apache-2.0
#include "services/decode/loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace setu::decode {
namespace {

RoomLimits LimitsOf(const WorkerOptions& options, const engine::Runner& runner) {
  const engine::RunnerOptions& rows = runner.options();
  return {.block_tokens = rows.block_tokens,
          .max_sequences = std::min({options.max_running, rows.max_rows, rows.max_logits}),
          .max_sequence_tokens = runner.max_sequence_tokens(),
          .grant_output_tokens = options.grant_output_tokens,
          .resume_watermark = options.resume_watermark};
}

}  // namespace

Loop::Loop(const WorkerOptions& options, engine::Runner& runner, const roofline::StepModel& model,
           kv_transfer::Receiver& receiver, Inbox<Event>& inbox, roofline::IdleProbe* probe,
           const Clock& clock, Logger& logger, Publish publish)
    : options_(options),
      runner_(runner),
      receiver_(receiver),
      inbox_(inbox),
      probe_(probe),
      clock_(clock),
      logger_(logger),
      publish_(std::move(publish)),
      cache_(runner.pool(), runner.options().block_tokens,
             options.prefix_cache ? runner.pool().total() : 0),
      room_(runner.pool(), LimitsOf(options, runner)),
      scheduler_(room_),
      prompts_({.chunk_tokens = std::max(options.chunk_tokens, runner.options().block_tokens),
                .block_tokens = runner.options().block_tokens,
                .chunks = runner.options().max_logits}),
      stepper_(runner, model,
               {.chunk_tokens = options.chunk_tokens,
                .block_tokens = runner.options().block_tokens,
                .itl_target = std::chrono::milliseconds(options.itl_target_ms)},
               clock) {
  PublishSnapshot();
}

bool Loop::Turn() {
  if (!stepped_) stepper_.Woke();
  for (Event& event : inbox_.Drain()) {
    std::visit([this](auto& arrived) { On(arrived); }, event);
  }
  CheckTimers();
  stepped_ = Step();
  Judge();
  PublishSnapshot();
  return stepped_;
}

void Loop::On(Opened& event) {
  if (counts_.draining) {
    return Refuse(*event.stream, absl::UnavailableError("this worker is draining; try another"));
  }
  auto request = std::make_unique<Request>();
  request->id = event.request;
  request->attempt = event.attempt;
  request->sequence = std::move(event.sequence);
  const absl::Status admitted = Admit(*request, event);
  if (!admitted.ok()) return Refuse(*event.stream, admitted);
  request->stream = std::move(event.stream);
  request->stream->SendReady(request->attempt, request->known.size());
  ++counts_.admitted;
  if (event.prefill_here) StartComputing(*request);
  requests_.emplace(event.request, std::move(request));
}

void Loop::On(Retried& event) {
  Request* request = Find(event.request);
  if (request == nullptr) return;
  if (request->state == Request::State::kRunning) {
    return request->stream->SendCommitted(request->attempt, request->kv_bytes);
  }
  if (request->state == Request::State::kComputing) {
    return Close(*request, absl::InvalidArgumentError("retry of a prompt that is computed here"),
                 counts_.failed);
  }
  const uint32_t newest = request->next_attempt.value_or(request->attempt);
  if (event.attempt <= newest) {
    return Close(*request,
                 absl::InvalidArgumentError(
                     absl::StrCat("retry.attempt is ", event.attempt, ", must be above ", newest)),
                 counts_.failed);
  }
  request->next_attempt = event.attempt;
  if (request->state == Request::State::kWithdrawing) return;
  if (request->transfer->Withdraw()) return StartOver(*request);
  request->state = Request::State::kWithdrawing;
}

void Loop::On(ChoiceStopped& event) {
  Request* request = Find(event.request);
  if (request == nullptr) return;
  for (const std::unique_ptr<Sequence>& sequence : request->running) {
    if (sequence->choice != event.choice) continue;
    Remove(*sequence);
    return CloseWhereDone(*request);
  }
  const std::vector<uint32_t>& choices = request->sequence.choices;
  const bool known = std::find(choices.begin(), choices.end(), event.choice) != choices.end();
  if (known && request->state != Request::State::kRunning) request->stopped.insert(event.choice);
}

void Loop::On(TokensDelivered& event) {
  Request* request = Find(event.request);
  if (request == nullptr) return;
  for (const std::unique_ptr<Sequence>& sequence : request->running) {
    if (sequence->choice != event.choice) continue;
    const int64_t next = std::min<int64_t>(event.next_index, Generated(*sequence));
    if (next <= sequence->delivered) continue;
    sequence->delivered = static_cast<int32_t>(next);
    sequence->paused_since.reset();
    PauseWhereAhead(*sequence);
  }
}

void Loop::On(StreamLost& event) {
  if (Request* request = Find(event.request)) {
    Close(*request, absl::CancelledError("the router ended the stream"), counts_.cancelled);
  }
}

void Loop::On(DrainAsked&) {
  if (std::exchange(counts_.draining, true)) return;
  logger_.Info(absl::StrCat("draining; running=", requests_.size()));
  for (auto& [id, request] : requests_) {
    if (request->stream) request->stream->SendDraining();
  }
}

void Loop::On(StopAsked&) {
  counts_.draining = true;
  ids_.clear();
  for (const auto& [id, request] : requests_) ids_.push_back(id);
  for (RequestId id : ids_) {
    if (Request* request = Find(id)) {
      Close(*request, absl::UnavailableError("this worker stops"), counts_.failed);
    }
  }
}

// The request whose stream is open.
Request* Loop::Find(RequestId id) {
  const auto place = requests_.find(id);
  const bool open = place != requests_.end() && place->second->stream != nullptr;
  return open ? place->second.get() : nullptr;
}

// ... and which is still where an event of that attempt finds it: the event may be late.
Request* Loop::Find(RequestId id, uint32_t attempt, Request::State state) {
  Request* request = Find(id);
  const bool there = request && request->attempt == attempt && request->state == state;
  return there ? request : nullptr;
}

void Loop::Refuse(ReplyStream& stream, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      ++counts_.refused_draining;
      break;
    case absl::StatusCode::kResourceExhausted:
      ++counts_.refused_full;
      break;
    default:
      ++counts_.refused_invalid;
  }
  stream.End(status);
}

void Loop::Close(Request& request, const absl::Status& status, uint64_t& count) {
  ++count;
  if (request.state == Request::State::kComputing) prompts_.Remove(request.id);
  for (const std::unique_ptr<Sequence>& sequence : request.running) scheduler_.Leave(*sequence);
  request.running.clear();
  request.grant.Release();
  request.next_attempt.reset();
  std::exchange(request.stream, nullptr)->End(status);
  if (request.state == Request::State::kWithdrawing) return;
  if (request.transfer != nullptr && !request.transfer->Withdraw()) {
    request.state = Request::State::kWithdrawing;
    return;
  }
  requests_.erase(request.id);
}

void Loop::CloseWhereDone(Request& request) {
  if (request.running.empty()) Close(request, absl::OkStatus(), counts_.finished);
}

void Loop::CheckTimers() {
  next_timer_.reset();
  const TimePoint now = clock_.Now();
  ids_.clear();
  for (const auto& [id, request] : requests_) ids_.push_back(id);
  for (RequestId id : ids_) {
    if (Request* request = Find(id)) CheckTransfer(*request, now);
    if (Request* request = Find(id)) CheckReaders(*request, now);
  }
}

void Loop::CheckTransfer(Request& request, TimePoint now) {
  if (!request.heard || request.state == Request::State::kWithdrawing) return;
  request.heard = std::max(*request.heard, request.transfer->last_arrival());
  const TimePoint stalled = *request.heard + options_.transfer_stall;
  if (now < stalled) return Wake(stalled);
  CountFailed(request, counts_.transfers_stalled);
  request.heard.reset();
  request.stream->SendTransferStalled(request.attempt);
}

void Loop::CheckReaders(Request& request, TimePoint now) {
  for (const std::unique_ptr<Sequence>& sequence : request.running) {
    if (!sequence->paused_since) continue;
    const TimePoint stalled = *sequence->paused_since + options_.stall_limit;
    if (now < stalled) {
      Wake(stalled);
      continue;
    }
    return Close(request,
                 absl::AbortedError(absl::StrCat(
                     options_.unsent_tokens, " tokens of choice ", sequence->choice,
                     " were not read for ", absl::StrCat(Milliseconds(options_.stall_limit)),
                     " ms; read faster, or go on from the last token with a new request")),
                 counts_.failed);
  }
}

void Loop::Wake(TimePoint time) { next_timer_ = std::min(next_timer_.value_or(time), time); }

bool Loop::Step() {
  const Scheduler::Plan& plan = scheduler_.Next();
  for (Sequence* victim : plan.preempted) {
    ++counts_.preemptions;
    Request& request = *victim->request;
    request.stream->SendPreempted(victim->choice);
    std::erase_if(request.running, [&](const auto& s) { return s.get() == victim; });
    CloseWhereDone(request);
  }
  const std::span<const Stepper::PromptChunk> chunks = NextChunks(plan.batch);
  if (plan.batch.empty() && chunks.empty()) return false;
  const Stepper::Result result = stepper_.Step(plan.batch, chunks);
  for (size_t i = 0; i < plan.batch.size(); ++i) Take(*plan.batch[i], result.tokens[i]);
  TakeComputed(chunks, result.first_tokens);
  return true;
}

void Loop::Take(Sequence& sequence, const engine::SampledToken& token) {
  Request& request = *sequence.request;
  const int32_t index = Generated(sequence);
  // Up to here its KV is computed.
  cache_.Add(sequence.place, sequence.ids, sequence.lease.blocks());
  sequence.ids.push_back(token.id);
  request.stream->SendToken(sequence.choice, index, token);
  const engine::EndReason end = engine::EndOf(request.sequence.sampling, token.id, index + 1);
  if (end == engine::EndReason::kNone) return PauseWhereAhead(sequence);
  request.stream->SendEnded(sequence.choice, end, index + 1);
  Remove(sequence);
  CloseWhereDone(request);
}

void Loop::Remove(Sequence& sequence) {
  scheduler_.Leave(sequence);
  std::erase_if(sequence.request->running, [&](const auto& s) { return s.get() == &sequence; });
}

void Loop::PauseWhereAhead(Sequence& sequence) {
  if (Generated(sequence) - sequence.delivered < options_.unsent_tokens) return;
  sequence.paused_since = clock_.Now();
}

// Prompts wait elsewhere where room is granted and the KV has not come yet: they are in a prefill
// worker, or on their way.
void Loop::Judge() {
  const auto waits = [](const auto& entry) {
    const Request::State state = entry.second->state;
    return state == Request::State::kGranted || state == Request::State::kReceiving;
  };
  roofline::Meter& meter = stepper_.meter();
  meter.Look(clock_.Now(), std::any_of(requests_.begin(), requests_.end(), waits));
  if (const auto next = meter.next_look()) Wake(*next);
  if (probe_ == nullptr) return;
  if (const auto peaks = probe_->Turn(clock_.Now(), requests_.empty())) meter.Raise(*peaks);
  if (const auto next = probe_->next()) Wake(*next);
}

void Loop::PublishSnapshot() {
  const kv::BlockPool& pool = room_.pool();
  counts_.running = static_cast<int32_t>(counts_.admitted - counts_.finished - counts_.failed -
                                         counts_.cancelled);
  counts_.sequences = room_.sequences();
  counts_.sequences_max = room_.limits().max_sequences;
  counts_.prompts =
      static_cast<int32_t>(std::count_if(requests_.begin(), requests_.end(), [](const auto& entry) {
        return entry.second->state == Request::State::kComputing;
      }));
  counts_.transfers =
      static_cast<int32_t>(std::count_if(requests_.begin(), requests_.end(), [](const auto& entry) {
        return entry.second->state == Request::State::kReceiving ||
               entry.second->state == Request::State::kWithdrawing;
      }));
  counts_.steps = stepper_.steps();
  counts_.tokens = stepper_.tokens();
  counts_.sampling = stepper_.sampling();
  counts_.between_steps = stepper_.between();
  counts_.tokens_per_second = stepper_.tokens_per_second();
  counts_.prompt_tokens = stepper_.prompt_tokens();
  counts_.prompt_tokens_left = prompts_.tokens_left();
  counts_.prompt_tokens_per_second = stepper_.prompt_tokens_per_second();
  counts_.roofline = FiguresOf(stepper_.meter());
  counts_.blocks_total = pool.total();
  counts_.blocks_held = pool.held();
  counts_.blocks_cached = pool.cached();
  counts_.blocks_promised = room_.promised();
  publish_(counts_, cache_.TakeChanges());
}

}  // namespace setu::decode
