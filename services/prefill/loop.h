// SPDX-License-Identifier: Apache-2.0
// The state of a prefill worker, which one thread owns: scheduler, prompts, block pool and model.
// Everyone else pushes into its inbox.
//
//   Loop loop({.queue = 16}, runner, step_model, start_push, &probe, clock, logger, publish);
//   while (!loop.over()) {      // the owner
//     if (!loop.Turn()) loop.Wait();
//   }
//
//   SETU_ASSIGN_OR_RETURN(PromptId id, loop.Admit(std::move(prompt)));   // any thread
//   loop.Cancel(id);            // its Reply ends CANCELLED within two steps
//   loop.BeginDrain();
//   loop.WaitDrained(grace);
//   loop.Stop();                // whatever is left ends UNAVAILABLE
#ifndef SETU_SERVICES_PREFILL_LOOP_H_
#define SETU_SERVICES_PREFILL_LOOP_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/inbox.h"
#include "common/engine/runner.h"
#include "common/engine/sampler.h"
#include "common/kv/prefix_cache.h"
#include "common/kv_transfer/push.h"
#include "common/logging/logger.h"
#include "common/roofline/idle_probe.h"
#include "common/roofline/meter.h"
#include "common/worker/busy_time.h"
#include "common/worker/prompt_scheduler.h"
#include "services/prefill/prompt.h"
#include "services/prefill/snapshot.h"

namespace setu::prefill {

struct LoopOptions {
  int32_t chunk_tokens = 512;
  int32_t queue = 16;  // prompts admitted and not started
  Duration age_limit = std::chrono::seconds(5);
  Duration push_deadline = std::chrono::seconds(60);  // from the first token to decode's answer
  bool prefix_cache = true;                           // what was computed is found again by its ids
};

using worker::PromptId;

class Loop {
 public:
  // Called in each turn, with what the cache has learnt and forgotten since the last call;
  // must not wait.
  using Publish = std::function<void(const Snapshot&, std::span<const kv::PrefixChange>)>;

  // What is passed by reference must outlive the loop. Without a `probe` the peaks stay as `model`
  // has them.
  Loop(const LoopOptions& options, engine::Runner& runner, const roofline::StepModel& model,
       kv_transfer::StartPush start_push, roofline::IdleProbe* probe, const Clock& clock,
       Logger& logger, Publish publish);

  // --- The owner ---
  // Looks at the clock, computes one step, then takes what has arrived. False: there was neither,
  // and nothing is to do before the next event or timer.
  bool Turn();
  std::optional<TimePoint> next_timer() const { return next_timer_; }
  void Wait();  // for an event or the timer
  bool over() const { return stopping_ && running_.empty(); }

  // --- Any thread ---
  // UNAVAILABLE while draining, RESOURCE_EXHAUSTED where the queue is full: the reply is not used
  // then.
  absl::StatusOr<PromptId> Admit(Prompt prompt);
  void Cancel(PromptId id);
  // Started prompts and their pushes finish, queued ones end UNAVAILABLE, new ones are refused.
  void BeginDrain();
  // True once nothing runs or is queued, false where that took too long. After BeginDrain.
  bool WaitDrained(Duration timeout);
  void Stop();
  Snapshot snapshot() const;  // with `at` and `busy`

 private:
  struct Queued {
    Prompt prompt;
    TimePoint arrived;
    kv::BlockHash root = 0;
  };
  struct Arrived {
    PromptId id;
    Queued queued;
  };
  struct Cancelled {
    PromptId id;
  };
  struct PushEnded {
    PromptId id;
    kv_transfer::PushResult result;
  };
  struct Drain {};
  struct StopNow {};
  using Event = std::variant<Arrived, Cancelled, PushEnded, Drain, StopNow>;

  enum class Outcome { kFinished, kFailed, kCancelled };
  // From the first chunk until the push, if any, has ended: only then may the blocks go.
  struct Running {
    Prompt prompt;
    TimePoint arrived, started;
    kv::BlockLease lease;
    kv::PrefixCache::Place place;             // what of it others can find
    int32_t known_tokens = 0;                 // at the start, not computed
    std::shared_ptr<kv_transfer::Push> push;  // null: it ends on its first token
    std::optional<TimePoint> committed;       // all is computed, decode has yet to answer
    std::optional<Outcome> outcome;           // the reply has ended
  };

  using RunningEntry = std::map<PromptId, Running>::value_type;

  void Handle(Arrived event);
  void Handle(Cancelled event);
  void Handle(PushEnded event);
  void TellTransport(const std::string& decode_address, const std::string& shm_refused);
  void Handle(Drain event);
  void Handle(StopNow event);
  kv::BlockHash RootOf(const wire::Sequence& sequence) const;
  int32_t KnownTokens(const Queued& queued) const;
  void LookForPrefixes();
  void StartNew(std::span<const worker::Chunk> chunks);
  bool Step();
  void HoldKnown(const worker::Chunk& first);
  void TakeBlocks(PromptId id);
  std::shared_ptr<kv_transfer::Push> StartPush(PromptId id, const Running& running);
  void Sample(RunningEntry& entry, std::span<const float> logits);
  void EndQueued(PromptId id, Outcome outcome, const absl::Status& status);
  void EndRunning(RunningEntry& entry, Outcome outcome, const absl::Status& status);
  void FailPush(RunningEntry& entry, const absl::Status& status);
  void ExpirePushes();
  void Judge();
  void Wake(TimePoint time);
  void Count(Outcome outcome);
  void CountStep(const roofline::StepRows& rows, Duration took);
  void PublishSnapshot();

  const LoopOptions options_;
  engine::Runner& runner_;
  const kv_transfer::StartPush start_push_;
  roofline::IdleProbe* const probe_;
  const Clock& clock_;
  Logger& logger_;
  const Publish publish_;
  worker::BusyTime busy_;
  // Bounded by `waiting_` and the ends of what runs. Shared with the pushes' callbacks, the last of
  // which may still be returning when the loop is gone.
  const std::shared_ptr<Inbox<Event>> inbox_;
  std::atomic<int32_t> waiting_ = 0;  // in the inbox or queued
  std::atomic<bool> refusing_ = false;
  std::atomic<uint64_t> refused_full_ = 0, refused_draining_ = 0;
  std::atomic<PromptId> next_id_ = 1;

  // The owner's only.
  kv::PrefixCache cache_;
  uint64_t looked_at_ = 0;  // version of the cache when all that is queued was looked for
  worker::PromptScheduler scheduler_;
  engine::Sampler sampler_;
  std::map<PromptId, Queued> queued_;
  std::map<PromptId, Running> running_;
  std::vector<engine::StepEntry> entries_;
  std::vector<std::pair<kv_transfer::Push*, int32_t>> final_;  // of the step: push, blocks
  const model::LayerDone layer_done_;
  roofline::Meter meter_;
  Snapshot current_;
  std::set<std::string> without_shm_;  // decode workers: it was told of them
  double recent_tokens_ = 0.0, recent_seconds_ = 0.0;
  std::optional<TimePoint> next_timer_;
  bool stopping_ = false;

  mutable std::mutex published_mutex_;
  std::condition_variable published_changed_;
  Snapshot published_;
};

}  // namespace setu::prefill

#endif  // SETU_SERVICES_PREFILL_LOOP_H_
