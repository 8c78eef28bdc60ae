// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/worker/first_tokens.h"

namespace setu::prefill {
namespace {

worker::ChunkLimits Limits(const LoopOptions& options, const engine::RunnerOptions& runner) {
  return {.chunk_tokens = std::min(options.chunk_tokens, runner.max_rows),
          .block_tokens = runner.block_tokens,
          .chunks = runner.max_logits,
          .age_limit = options.age_limit};
}

constexpr size_t kToldWorkers = 1024;

absl::Status Leaving() {
  return absl::UnavailableError("this prefill worker is leaving; try another");
}

// The router acts on three codes as they are; with the rest it tries other workers.
absl::Status FromPush(const Prompt& prompt, const absl::Status& status) {
  const std::string message =
      absl::StrCat("push to ", prompt.decode_address, ": ", status.message());
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kResourceExhausted:
      return absl::Status(status.code(), message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace

Loop::Loop(const LoopOptions& options, engine::Runner& runner, const roofline::StepModel& model,
           kv_transfer::StartPush start_push, roofline::IdleProbe* probe, const Clock& clock,
           Logger& logger, Publish publish)
    : options_(options),
      runner_(runner),
      start_push_(std::move(start_push)),
      probe_(probe),
      clock_(clock),
      logger_(logger),
      publish_(std::move(publish)),
      busy_(clock),
      inbox_(std::make_shared<Inbox<Event>>(options.queue)),
      cache_(runner.pool(), runner.options().block_tokens,
             options.prefix_cache ? runner.pool().total() : 0),
      scheduler_(Limits(options, runner.options())),
      sampler_(runner.config().vocabulary),
      layer_done_([this](int32_t layer) {
        for (const auto& [push, blocks] : final_) push->Final(layer, blocks);
      }),
      meter_(model, clock.Now()) {
  PublishSnapshot();
}

absl::StatusOr<PromptId> Loop::Admit(Prompt prompt) {
  if (refusing_) {
    ++refused_draining_;
    return Leaving();
  }
  // A resumed sequence has a client that waits in the middle of its answer.
  const int32_t limit = prompt.resumed ? 2 * options_.queue : options_.queue;
  if (waiting_.fetch_add(1) >= limit) {
    waiting_.fetch_sub(1);
    ++refused_full_;
    return absl::ResourceExhaustedError(
        absl::StrCat("prefill queue is full: ", limit, " prompts wait; try another worker"));
  }
  const PromptId id = next_id_.fetch_add(1);
  inbox_->PushUnbounded(Arrived{id, {std::move(prompt), clock_.Now()}});
  return id;
}

void Loop::Cancel(PromptId id) { inbox_->PushUnbounded(Cancelled{id}); }

void Loop::BeginDrain() {
  refusing_ = true;
  inbox_->PushUnbounded(Drain{});
}

bool Loop::WaitDrained(Duration timeout) {
  std::unique_lock lock(published_mutex_);
  return published_changed_.wait_for(lock, timeout, [this] {
    return published_.draining && published_.running == 0 && published_.queued == 0;
  });
}

void Loop::Stop() {
  refusing_ = true;
  inbox_->PushUnbounded(StopNow{});
}

Snapshot Loop::snapshot() const {
  std::unique_lock lock(published_mutex_);
  Snapshot snapshot = published_;
  lock.unlock();
  const worker::BusyTime::Reading reading = busy_.Read();
  snapshot.at = reading.at;
  snapshot.busy = reading.busy;
  snapshot.refused_full = refused_full_;
  snapshot.refused_draining = refused_draining_;
  return snapshot;
}

bool Loop::Turn() {
  next_timer_.reset();
  ExpirePushes();
  const bool stepped = Step();
  std::vector<Event>& events = inbox_->Drain();
  for (Event& event : events) {
    std::visit([this](auto& e) { Handle(std::move(e)); }, event);
  }
  Judge();
  PublishSnapshot();
  return stepped || !events.empty();
}

// What is computed and not yet answered is on its way meanwhile.
void Loop::Wait() {
  const TimePoint begin = clock_.Now();
  inbox_->WaitUntil(next_timer_);
  const auto under_way = [](const RunningEntry& entry) {
    return entry.second.committed.has_value();
  };
  if (std::any_of(running_.begin(), running_.end(), under_way)) {
    meter_.CountLinkWait(clock_.Now() - begin);
  }
}

void Loop::Wake(TimePoint time) { next_timer_ = std::min(next_timer_.value_or(time), time); }

void Loop::Handle(Arrived event) {
  if (current_.draining) {
    waiting_.fetch_sub(1);
    ++refused_draining_;
    event.queued.prompt.reply->End(Leaving());
    return;
  }
  ++current_.admitted;
  const Prompt& prompt = event.queued.prompt;
  scheduler_.Add({.id = event.id,
                  .tokens = static_cast<int32_t>(prompt.sequence.ids.size()),
                  .resumed = prompt.resumed,
                  .arrived = event.queued.arrived});
  event.queued.root = RootOf(prompt.sequence);
  scheduler_.Known(event.id, KnownTokens(event.queued));
  queued_.emplace(event.id, std::move(event.queued));
}

void Loop::Handle(Cancelled event) {
  const absl::Status status = absl::CancelledError("the router cancelled the prompt");
  if (queued_.contains(event.id)) EndQueued(event.id, Outcome::kCancelled, status);
  auto running = running_.find(event.id);
  if (running != running_.end()) EndRunning(*running, Outcome::kCancelled, status);
}

void Loop::Handle(PushEnded event) {
  auto found = running_.find(event.id);
  SETU_CHECK(found != running_.end(), "a prompt runs until its push has ended");
  Running& running = found->second;
  current_.kv_bytes += event.result.kv_bytes;
  current_.kv_bytes_by_shm += event.result.shm_bytes;
  TellTransport(running.prompt.decode_address, event.result.shm_refused);
  if (!running.outcome && event.result.status.ok()) {
    meter_.CountTransfer(event.result.kv_bytes, event.result.sending);
    running.prompt.reply->Pushed(event.result.kv_bytes, clock_.Now() - *running.committed);
    EndRunning(*found, Outcome::kFinished, absl::OkStatus());
  } else {
    FailPush(*found, FromPush(running.prompt, event.result.status));
  }
  Count(*running.outcome);
  running_.erase(found);
}

// Once for each decode worker: on another host it is so for ever.
void Loop::TellTransport(const std::string& decode_address, const std::string& shm_refused) {
  if (shm_refused.empty()) return;
  if (without_shm_.size() == kToldWorkers) without_shm_.clear();
  if (!without_shm_.insert(decode_address).second) return;
  logger_.Info(
      absl::StrCat("KV to ", decode_address, " goes by gRPC, not by shared memory: ", shm_refused));
}

void Loop::Handle(Drain) {
  current_.draining = true;
  while (!queued_.empty()) EndQueued(queued_.begin()->first, Outcome::kFailed, Leaving());
}

void Loop::Handle(StopNow) {
  stopping_ = true;
  Handle(Drain{});
  for (auto& running : running_) EndRunning(running, Outcome::kFailed, Leaving());
}

// One step of the model, where there is anything to compute.
bool Loop::Step() {
  LookForPrefixes();
  const std::vector<worker::Chunk>& chunks = scheduler_.Next(clock_.Now(), runner_.pool().free());
  if (chunks.empty()) return false;
  busy_.Begin();
  StartNew(chunks);
  entries_.clear();
  final_.clear();
  roofline::StepRows rows;
  for (const worker::Chunk& chunk : chunks) {
    const Running& running = running_.at(chunk.id);
    const std::span<const engine::TokenId> ids = running.prompt.sequence.ids;
    entries_.push_back({.ids = ids.subspan(chunk.start, chunk.tokens),
                        .start = chunk.start,
                        .blocks = running.lease.blocks(),
                        .want_logits = chunk.last});
    if (running.push != nullptr) {
      const int32_t end = chunk.start + chunk.tokens;
      final_.emplace_back(running.push.get(), kv::BlocksFor(end, runner_.options().block_tokens));
    }
    rows.Add(chunk.tokens, chunk.start, chunk.last);
  }
  const kernels::ConstMatrix logits = runner_.Step(entries_, layer_done_);
  int64_t row = 0;
  for (const worker::Chunk& chunk : chunks) {
    Running& running = running_.at(chunk.id);
    const std::span<const engine::TokenId> ids = running.prompt.sequence.ids;
    cache_.Add(running.place, ids.first(chunk.start + chunk.tokens), running.lease.blocks());
    if (chunk.last) Sample(*running_.find(chunk.id), {logits.Row(row++), size_t(logits.cols)});
  }
  CountStep(rows, busy_.End());
  return true;
}

void Loop::Sample(RunningEntry& entry, std::span<const float> logits) {
  Running& running = entry.second;
  const wire::Sequence& sequence = running.prompt.sequence;
  const std::vector<wire::FirstToken> first_tokens =
      worker::SampleFirstTokens(sampler_, logits, sequence);
  const TimePoint now = clock_.Now();
  running.prompt.reply->FirstTokens(first_tokens, running.started - running.arrived,
                                    now - running.started, running.known_tokens);
  const auto ended = [](const wire::FirstToken& first) {
    return first.end != engine::EndReason::kNone;
  };
  if (std::all_of(first_tokens.begin(), first_tokens.end(), ended)) {
    EndRunning(entry, Outcome::kFinished, absl::OkStatus());
  } else {
    running.committed = now;
    running.push->Commit(first_tokens);
  }
}

void Loop::EndQueued(PromptId id, Outcome outcome, const absl::Status& status) {
  waiting_.fetch_sub(1);
  queued_.extract(id).mapped().prompt.reply->End(status);
  scheduler_.Remove(id);
  Count(outcome);
}

// The reply ends now, once; the blocks stay until the push has let go of them.
void Loop::EndRunning(RunningEntry& entry, Outcome outcome, const absl::Status& status) {
  auto& [id, running] = entry;
  if (running.outcome) return;
  running.outcome = outcome;
  running.prompt.reply->End(status);
  scheduler_.Remove(id);
  if (running.push != nullptr) return running.push->Cancel();
  inbox_->PushUnbounded(PushEnded{id, {}});
}

void Loop::FailPush(RunningEntry& entry, const absl::Status& status) {
  if (!entry.second.outcome) entry.second.prompt.reply->PushFailed();
  EndRunning(entry, Outcome::kFailed, status);
}

void Loop::ExpirePushes() {
  const TimePoint now = clock_.Now();
  for (auto& entry : running_) {
    const Running& running = entry.second;
    if (running.outcome || !running.committed) continue;
    const TimePoint due = *running.committed + options_.push_deadline;
    if (now < due) {
      Wake(due);
    } else {
      FailPush(entry, absl::UnavailableError(absl::StrCat(
                          "push to ", running.prompt.decode_address, " got no answer within ",
                          Milliseconds(options_.push_deadline), " ms of the last token")));
    }
  }
}

// Whether prompts wait for this worker elsewhere, the router alone knows.
void Loop::Judge() {
  const TimePoint now = clock_.Now();
  meter_.Look(now, /*prompts_wait=*/false);
  if (const auto next = meter_.next_look()) Wake(*next);
  if (probe_ == nullptr) return;
  const bool idle = running_.empty() && queued_.empty();
  if (const auto peaks = probe_->Turn(now, idle)) meter_.Raise(*peaks);
  if (const auto next = probe_->next()) Wake(*next);
}

void Loop::Count(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished:
      ++current_.finished;
      break;
    case Outcome::kFailed:
      ++current_.failed;
      break;
    case Outcome::kCancelled:
      ++current_.cancelled;
      break;
  }
}

// The rate fades over about ten steps, so that it follows the prompts that are there.
void Loop::CountStep(const roofline::StepRows& rows, Duration took) {
  constexpr double kKept = 0.9;
  // A prompt of a few tokens, such as a canary, says what a step costs and not what tokens do.
  constexpr double kTelling = 64;
  meter_.CountStep(rows, took);
  recent_tokens_ = kKept * recent_tokens_ + static_cast<double>(rows.rows);
  recent_seconds_ = kKept * recent_seconds_ + std::chrono::duration<double>(took).count();
  current_.tokens += rows.rows;
  ++current_.steps;
  if (recent_tokens_ >= kTelling && recent_seconds_ > 0.0) {
    current_.tokens_per_second = recent_tokens_ / recent_seconds_;
  }
}

void Loop::PublishSnapshot() {
  current_.running = static_cast<int32_t>(running_.size());
  current_.queued = static_cast<int32_t>(queued_.size());
  current_.queued_tokens = scheduler_.tokens_left();
  current_.blocks_total = runner_.pool().total();
  current_.blocks_free = runner_.pool().free();
  current_.blocks_cached = runner_.pool().cached();
  current_.roofline = FiguresOf(meter_);
  publish_(current_, cache_.TakeChanges());
  std::lock_guard lock(published_mutex_);
  published_ = current_;
  published_changed_.notify_all();
}

}  // namespace setu::prefill
