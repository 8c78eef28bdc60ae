// SPDX-License-Identifier: Apache-2.0
// The one thread that owns a decode worker's state: room, requests, batch, model. Others reach it
// by its inbox and see of it only the snapshots.
//
//   Loop loop(options, runner, step_model, receiver, inbox, &probe, clock, logger, publish);
//   while (...) {
//     if (!loop.Turn()) inbox.WaitUntil(loop.next_timer());
//   }
#ifndef SETU_SERVICES_DECODE_LOOP_H_
#define SETU_SERVICES_DECODE_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/inbox.h"
#include "common/engine/runner.h"
#include "common/kv/prefix_cache.h"
#include "common/kv_transfer/receiver.h"
#include "common/logging/logger.h"
#include "common/roofline/idle_probe.h"
#include "common/worker/prompt_scheduler.h"
#include "services/decode/event.h"
#include "services/decode/grant.h"
#include "services/decode/options.h"
#include "services/decode/request.h"
#include "services/decode/scheduler.h"
#include "services/decode/snapshot.h"
#include "services/decode/stepper.h"

namespace setu::decode {

class Loop {
 public:
  // With what the cache has learnt and forgotten since the last call.
  using Publish = std::function<void(const Snapshot&, std::span<const kv::PrefixChange>)>;
  // What is passed by reference must outlive the loop; nothing may write into a block when it dies.
  // `publish` is called in each turn. Without a `probe` the peaks stay as `model` has them.
  Loop(const WorkerOptions& options, engine::Runner& runner, const roofline::StepModel& model,
       kv_transfer::Receiver& receiver, Inbox<Event>& inbox, roofline::IdleProbe* probe,
       const Clock& clock, Logger& logger, Publish publish);

  // Takes what has arrived, looks at the clock, then steps the batch once. False: there was no
  // batch, and nothing is to do before the next event or timer.
  bool Turn();
  std::optional<TimePoint> next_timer() const { return next_timer_; }
  worker::BusyTime::Reading busy() const { return stepper_.busy(); }  // any thread

 private:
  void On(Opened& event);
  void On(Retried& event);
  void On(ChoiceStopped& event);
  void On(TokensDelivered& event);
  void On(StreamLost& event);
  void On(DrainAsked& event);
  void On(StopAsked& event);
  void On(kv_transfer::TransferStarted& event);
  void On(kv_transfer::TransferCommitted& event);
  void On(kv_transfer::TransferFailed& event);
  void On(kv_transfer::TransferWithdrawn& event);

  kv::BlockHash RootOf(const Request& request) const;
  void HoldKnown(Request& request, int32_t most_tokens);
  absl::Status Admit(Request& request, const Opened& event);
  void StartComputing(Request& request);
  std::span<const Stepper::PromptChunk> NextChunks(std::span<Sequence* const> batch);
  void TakeComputed(std::span<const Stepper::PromptChunk> chunks,
                    std::span<const std::vector<wire::FirstToken>> first_tokens);
  void Remember(Request& request);
  Request* Find(RequestId id);
  Request* Find(RequestId id, uint32_t attempt, Request::State state);
  void Refuse(ReplyStream& stream, const absl::Status& status);
  bool Expect(Request& request);
  void CountFailed(const Request& request, uint64_t& reason);
  // Nothing writes into its blocks: on with the same or the next attempt, or gone.
  void StartOver(Request& request);
  void Start(Request& request, const std::vector<wire::FirstToken>& first_tokens);
  void Join(Request& request, const wire::FirstToken& first);
  // Ends the stream and frees all that no copy writes into.
  void Close(Request& request, const absl::Status& status, uint64_t& count);
  void CloseWhereDone(Request& request);

  void CheckTimers();
  void CheckTransfer(Request& request, TimePoint now);
  void CheckReaders(Request& request, TimePoint now);
  void Wake(TimePoint time);

  bool Step();
  void Take(Sequence& sequence, const engine::SampledToken& token);
  void Remove(Sequence& sequence);
  void PauseWhereAhead(Sequence& sequence);
  void Judge();
  void PublishSnapshot();

  const WorkerOptions options_;
  engine::Runner& runner_;
  kv_transfer::Receiver& receiver_;
  Inbox<Event>& inbox_;
  roofline::IdleProbe* const probe_;
  const Clock& clock_;
  Logger& logger_;
  const Publish publish_;

  kv::PrefixCache cache_;
  Room room_;
  Scheduler scheduler_;
  worker::PromptScheduler prompts_;  // those that are computed here
  Stepper stepper_;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  std::vector<RequestId> ids_;                // scratch
  std::vector<Stepper::PromptChunk> chunks_;  // of the step
  std::optional<TimePoint> next_timer_;
  bool stepped_ = false;  // in the last turn, so that nobody has waited since
  Snapshot counts_;
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_LOOP_H_
