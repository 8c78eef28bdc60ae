// SPDX-License-Identifier: Apache-2.0
#include "services/router/request_flow.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/engine/sampler.h"
#include "common/rpc/task.h"
#include "services/router/sequence_run.h"

namespace setu::router {
namespace {

using setu::v1::GenerateResponse;

// After the last try. Codes that say more than "not now" are kept.
absl::Status GaveUp(int32_t tries, const absl::Status& why) {
  const bool telling = absl::IsDataLoss(why) || absl::IsInternal(why);
  return absl::Status(
      telling ? why.code() : absl::StatusCode::kUnavailable,
      absl::StrCat("gave up after ", tries, " tries without a token: ", why.message()));
}

}  // namespace

PlacementRequest SizeOf(const ValidRequest& request, int32_t generated, int32_t choices) {
  PlacementRequest size;
  size.prompt_tokens = static_cast<int64_t>(request.prompt_ids().size()) + generated;
  size.tokens_to_come = request.sampling().max_tokens - generated;
  size.choices = choices;
  size.resumed = generated > 0;
  return size;
}

std::shared_ptr<RequestFlow> RequestFlow::Start(const FlowServices& services, Arrival arrival,
                                                ValidRequest request,
                                                std::shared_ptr<ClientSink> sink, Ended ended) {
  std::shared_ptr<RequestFlow> flow(new RequestFlow(
      services, std::move(arrival), std::move(request), std::move(sink), std::move(ended)));
  std::set<uint32_t> all;
  for (int32_t i = 0; i < flow->request_.choices(); ++i) all.insert(all.end(), i);
  SequenceRun* run = flow->Spawn(all, /*resumed=*/flow->arrival_.goes_first);
  for (Choice& choice : flow->choices_) choice.owner = run;
  return flow;
}

RequestFlow::RequestFlow(const FlowServices& services, Arrival arrival, ValidRequest request,
                         std::shared_ptr<ClientSink> sink, Ended ended)
    : services_(services),
      arrival_(std::move(arrival)),
      request_(std::move(request)),
      sink_(std::move(sink)),
      on_end_(std::move(ended)),
      timeline_(arrival_.at) {
  choices_.reserve(request_.choices());
  for (int32_t i = 0; i < request_.choices(); ++i) {
    choices_.push_back(Choice{.answer = Answer(services_.tokenizer, request_, i)});
  }
}

RequestFlow::~RequestFlow() = default;

// The run waits for its place before anything else, so the caller can still say what it is for.
SequenceRun* RequestFlow::Spawn(std::set<uint32_t> choices, bool resumed) {
  auto run = std::make_unique<SequenceRun>(*this, std::move(choices), resumed);
  SequenceRun* const handle = run.get();
  runs_.push_back(handle);
  services_.loop.PostCompletion([flow = shared_from_this(), run = std::move(run)]() mutable {
    rpc::Spawn(SequenceRun::Run(std::move(flow), std::move(run)));
  });
  return handle;
}

void RequestFlow::Took(uint32_t choice, int32_t next_index) {
  Choice& c = choices_[choice];
  c.taken = std::max(c.taken, next_index);
  Acknowledge(choice);
}

// What the answer holds back for its text does not wait for the client: where nothing else does,
// its worker may go on, else the text would never be complete.
void RequestFlow::Acknowledge(uint32_t choice) {
  const Choice& c = choices_[choice];
  const int32_t on_their_way = c.answer.delivered() - c.taken;
  if (c.owner != nullptr) c.owner->Took(choice, generated(choice) - on_their_way);
}

std::vector<engine::TokenId> RequestFlow::IdsOf(const std::set<uint32_t>& choices) const {
  std::vector<engine::TokenId> ids = request_.prompt_ids();
  const std::vector<engine::TokenId>& generated = choices_[*choices.begin()].answer.ids();
  ids.insert(ids.end(), generated.begin(), generated.end());
  return ids;
}

wire::Sequence RequestFlow::StateOf(const std::set<uint32_t>& choices) {
  wire::Sequence sequence;
  sequence.uuid = absl::StrCat(arrival_.uuid, "-", ++streams_);
  sequence.ids = IdsOf(choices);
  sequence.cache_salt = arrival_.cache_salt;
  sequence.prompt_length = static_cast<int32_t>(request_.prompt_ids().size());
  sequence.sampling = request_.sampling();
  sequence.choices.assign(choices.begin(), choices.end());
  return sequence;
}

void RequestFlow::Placed() {
  if (!started_) timeline_.Enter(Phase::kGrant, Now());
}

void RequestFlow::TakesPart(const Worker& worker) {
  const worker::v1::Fingerprint& fingerprint = worker.description.fingerprint();
  const bool news = numerics_.emplace(fingerprint.numerics(), fingerprint.logits_digest()).second;
  if (news && numerics_.size() == 2) services_.observer.MixedNumerics();
}

void RequestFlow::Granted(SequenceRun& run, const Worker& decode, uint32_t blocks_held) {
  TakesPart(decode);
  const bool resumed = started_;
  if (!resumed) SendStarted(decode, blocks_held);
  for (uint32_t number : run.choices()) {
    Choice& choice = choices_[number];
    if (resumed) CountResume(choice, decode);
    choice.holder = decode.description.incarnation();
    if (choice.candidate != &run) continue;
    if (choice.owner != nullptr) choice.owner->Release(number);
    choice.owner = std::exchange(choice.candidate, nullptr);
  }
}

void RequestFlow::CountResume(const Choice& choice, const Worker& decode) {
  ResumeCounts& resumes = services_.counts.resumes;
  switch (choice.moves_because) {
    case Cause::kLost:
      ++resumes.lost;
      return;
    case Cause::kDrained:
      ++resumes.drained;
      return;
    case Cause::kPreempted:
      ++(choice.holder == decode.description.incarnation() ? resumes.preempted
                                                           : resumes.rebalanced);
      return;
  }
}

void RequestFlow::SendStarted(const Worker& decode, uint32_t blocks_held) {
  started_ = true;
  timeline_.Enter(Phase::kPrefill, Now());
  const worker::v1::Fingerprint& fingerprint = decode.description.fingerprint();
  GenerateResponse response;
  setu::v1::Started& started = *response.mutable_started();
  started.set_request_id(arrival_.label);
  started.set_model(services_.model_name);
  started.set_numerics(fingerprint.numerics());
  started.set_seed(request_.sampling().seed);
  started.set_prompt_tokens(static_cast<uint32_t>(request_.prompt_ids().size()));
  started.set_cached_tokens(blocks_held * fingerprint.kv_layout().block_tokens());
  sink_->Send(response);
  if (!request_.echo()) return;
  for (int32_t i = 0; i < request_.choices(); ++i) {
    setu::v1::Delta delta;
    delta.set_index(static_cast<uint32_t>(i));
    delta.set_echo(true);
    delta.set_text(request_.prompt_text());
    delta.mutable_token_ids()->Assign(request_.prompt_ids().begin(), request_.prompt_ids().end());
    Send(std::move(delta));
  }
}

void RequestFlow::Send(setu::v1::Delta delta) {
  GenerateResponse response;
  *response.mutable_delta() = std::move(delta);
  sink_->Send(response);
}

uint32_t RequestFlow::AttemptBegan(const Worker& decode, const Worker& prefill) {
  return timeline_.BeginAttempt(decode.address, prefill.address, Now());
}

void RequestFlow::AttemptEnded(uint32_t attempt, const absl::Status& status) {
  timeline_.EndAttempt(attempt, status, Now());
}

bool RequestFlow::Push(uint32_t number, int32_t first_index,
                       std::span<const engine::SampledToken> tokens) {
  Choice& choice = choices_[number];
  if (ended_ || choice.finished) return true;
  const int32_t before = generated(number);
  if (first_index < 0 || first_index > before) return false;
  std::optional<setu::v1::Delta> delta = choice.answer.Push(first_index, tokens);
  const int32_t added = generated(number) - before;
  if (added > 0) Observe(choice, added);
  if (delta) Send(*std::move(delta));
  Acknowledge(number);
  if (choice.answer.stopped()) Finish(number, engine::EndReason::kNone);
  return true;
}

void RequestFlow::Observe(Choice& choice, int32_t tokens) {
  const TimePoint now = Now();
  choice.tries = 0;
  if (timeline_.phase() != Phase::kDecode) timeline_.Enter(Phase::kDecode, now);
  if (choice.last_token == TimePoint()) {
    services_.observer.FirstToken(now - arrival_.at);
  } else {
    services_.observer.InterToken((now - choice.last_token) / tokens, tokens);
  }
  choice.last_token = now;
}

void RequestFlow::Finish(uint32_t number, engine::EndReason reason) {
  Choice& choice = choices_[number];
  if (ended_ || std::exchange(choice.finished, true)) return;
  auto [delta, finished] = choice.answer.Finish(reason);
  if (delta) Send(*std::move(delta));
  finished.mutable_usage()->set_prompt_tokens(static_cast<uint32_t>(request_.prompt_ids().size()));
  finished.mutable_usage()->set_cached_tokens(cached_tokens_);
  *finished.mutable_timings() = timeline_.Timings(Now());
  if (numerics_.size() > 1) {
    for (const auto& [path, digest] : numerics_) finished.add_mixed_numerics(path);
  }
  services_.observer.Finished(finished);
  GenerateResponse response;
  *response.mutable_finished() = std::move(finished);
  sink_->Send(response);
  for (SequenceRun* run :
       {std::exchange(choice.owner, nullptr), std::exchange(choice.candidate, nullptr)}) {
    if (run != nullptr) run->Release(number);
  }
  if (std::all_of(choices_.begin(), choices_.end(), [](const Choice& c) { return c.finished; })) {
    End(absl::OkStatus());
  }
}

bool RequestFlow::MayTryAgain(const std::set<uint32_t>& choices, const absl::Status& why) {
  for (uint32_t number : choices) {
    if (choices_[number].tries++ < services_.options.tries_without_progress) continue;
    End(GaveUp(services_.options.tries_without_progress, why));
    return false;
  }
  return true;
}

bool RequestFlow::LostBlocksTooOften(const std::set<uint32_t>& choices) const {
  return std::any_of(choices.begin(), choices.end(), [this](uint32_t number) {
    return choices_[number].preemptions >= services_.options.most_preemptions;
  });
}

void RequestFlow::Preempted(SequenceRun& run, uint32_t number) {
  ++choices_[number].preemptions;
  Resume(run, number, Cause::kPreempted, absl::UnavailableError("preempted"));
}

void RequestFlow::Resume(SequenceRun& run, uint32_t number, Cause cause, const absl::Status& why) {
  Choice& choice = choices_[number];
  if (ended_ || choice.owner != &run) return;
  choice.owner = nullptr;
  // The loss may have come between the last token and the word that it was the last.
  const std::vector<engine::TokenId>& ids = choice.answer.ids();
  const engine::EndReason end =
      ids.empty() ? engine::EndReason::kNone
                  : engine::EndOf(request_.sampling(), ids.back(), generated(number));
  if (end != engine::EndReason::kNone) return Finish(number, end);
  choice.owner = std::exchange(choice.candidate, nullptr);
  if (choice.owner != nullptr) return;
  // Where a grant was worth nothing any more, that for which it was is counted.
  if (!absl::IsAborted(why) && !MayTryAgain({number}, why)) return;
  choice.moves_because = cause;
  choice.owner = Spawn({number}, /*resumed=*/true);
}

void RequestFlow::Move(const std::set<uint32_t>& choices) {
  for (uint32_t number : choices) {
    Choice& choice = choices_[number];
    if (choice.candidate != nullptr) continue;
    choice.moves_because = Cause::kDrained;
    choice.candidate = Spawn({number}, /*resumed=*/true);
  }
}

// A candidate may have gone to the very worker that drains, before its report of that had come.
// Where it is tried no more, the choice stays with its owner.
void RequestFlow::MoveAgain(uint32_t number, bool final) {
  Choice& choice = choices_[number];
  if (ended_ || final || choice.owner == nullptr) return;
  if (choice.tries++ < services_.options.tries_without_progress) Move({number});
}

void RequestFlow::Left(SequenceRun& run, const absl::Status& why, bool final) {
  std::erase(runs_, &run);
  for (uint32_t number : run.choices()) {
    Choice& choice = choices_[number];
    if (choice.candidate == &run) {
      choice.candidate = nullptr;
      MoveAgain(number, final);
    }
    if (choice.owner == &run && final) return End(why);
    Resume(run, number, Cause::kLost, why);
  }
}

void RequestFlow::End(const absl::Status& status) {
  if (std::exchange(ended_, true)) return;
  FlowEnd end;
  end.status = status;
  end.placed = timeline_.phase() != Phase::kQueue;
  if (absl::IsResourceExhausted(status)) {
    end.retry_after = services_.dispatcher.RetryAfter(arrival_.share);
  }
  end.last_index.clear();
  for (const Choice& choice : choices_) end.last_index.push_back(choice.answer.delivered() - 1);
  services_.observer.Ended(status, Now() - arrival_.at);
  if (arrival_.trace) EndTrace(status);
  for (SequenceRun* run : runs_) run->Stop();
  on_end_(end);
  sink_->End(end);  // last: a client that has its end finds it counted
}

void RequestFlow::EndTrace(const absl::Status& status) {
  EndedRequest ended{.model = services_.model_name,
                     .id = arrival_.label,
                     .timeline = timeline_,
                     .at = Now(),
                     .status = status,
                     .choices = std::ssize(choices_),
                     .prompt_tokens = std::ssize(request_.prompt_ids()),
                     .cached_tokens = cached_tokens_};
  for (const Choice& choice : choices_) ended.answer_tokens += std::ssize(choice.answer.ids());
  arrival_.trace->tracer->End(*arrival_.trace, ended);
}

}  // namespace setu::router
