// SPDX-License-Identifier: Apache-2.0
// The life of one request: what the client sees, whatever happens to the workers. It owns an
// Answer per choice; SequenceRuns bring tokens to them. A run that loses its workers leaves, and
// each of its unfinished choices goes on in a run of its own from the token it had reached.
// Everything on the loop's thread.
//
//   auto flow = RequestFlow::Start(services, arrival, std::move(request), sink, [&](const FlowEnd&)
//   {...}); flow->Cancel(absl::CancelledError("the client left"));
#ifndef SETU_SERVICES_ROUTER_REQUEST_FLOW_H_
#define SETU_SERVICES_ROUTER_REQUEST_FLOW_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "common/tokenizer/tokenizer.h"
#include "common/wire/convert.h"
#include "services/router/answer.h"
#include "services/router/client_sink.h"
#include "services/router/dispatcher.h"
#include "services/router/readiness.h"
#include "services/router/request_tracer.h"
#include "services/router/snapshot.h"
#include "services/router/timeline.h"
#include "services/router/valid_request.h"
#include "services/router/worker_calls.h"
#include "services/router/worker_directory.h"
#include "services/router/worker_health.h"

namespace setu::router {

class SequenceRun;

// What `choices` of a request need of the workers after `generated` tokens of each.
PlacementRequest SizeOf(const ValidRequest& request, int32_t generated, int32_t choices);

struct FlowOptions {
  int32_t tries_without_progress = 4;  // resumes and retries of a choice between two tokens
  int32_t most_preemptions = 2;        // of a choice; then it is promised all that it may need
  Duration grant_timeout = std::chrono::seconds(5);     // for a worker's answer to Open or Retry
  Duration silence = std::chrono::seconds(10);          // a running worker is lost after this, and
  int32_t silence_steps = 20;                           // after so many of its steps
  Duration avoid_full = std::chrono::milliseconds(50);  // no new work for a worker that refused
};

struct FlowCounts {
  ResumeCounts resumes;
  uint64_t retries = 0;         // prefill attempts beyond a stream's first
  uint64_t local_prefills = 0;  // prompts that a decode worker computed itself
};

// What every flow of a router shares; all of it outlives them.
struct FlowServices {
  rpc::EventLoop& loop;
  Dispatcher& dispatcher;
  WorkerHealth& health;
  Readiness& readiness;
  WorkerCalls& calls;
  const tokenizer::Tokenizer& tokenizer;
  const std::string& model_name;
  const FlowOptions& options;
  FlowCounts& counts;
  FlowObserver& observer;
};

struct Arrival {
  std::string uuid;   // unique among all routers
  std::string label;  // for the client
  TimePoint at;
  TimePoint deadline;
  Share share;
  bool goes_first = false;  // before new prompts, as a resume does
  uint64_t cache_salt = 0;  // only prompts of equal salts share blocks
  std::vector<std::pair<std::string, std::string>> metadata;  // carried on to workers
  std::optional<RequestTrace> trace;                          // absent: not recorded
};

class RequestFlow : public std::enable_shared_from_this<RequestFlow> {
 public:
  // Once, before the sink's End.
  using Ended = std::function<void(const FlowEnd&)>;

  static std::shared_ptr<RequestFlow> Start(const FlowServices& services, Arrival arrival,
                                            ValidRequest request, std::shared_ptr<ClientSink> sink,
                                            Ended ended);
  ~RequestFlow();

  // Stops everything; nothing happens where it has ended.
  void Cancel(const absl::Status& why) { End(why); }
  // Tokens below this generated index went on to the client.
  void Took(uint32_t choice, int32_t next_index);

  // --- For runs ---
  const FlowServices& services() const { return services_; }
  const Arrival& arrival() const { return arrival_; }
  const ValidRequest& request() const { return request_; }
  bool ended() const { return ended_; }
  // Tokens taken so far.
  int32_t generated(uint32_t choice) const {
    return static_cast<int32_t>(choices_[choice].answer.ids().size());
  }
  // Prompt and what was generated; several choices have the same.
  std::vector<engine::TokenId> IdsOf(const std::set<uint32_t>& choices) const;
  // The state to open a stream with, under a uuid of its own. Several choices have the same ids.
  wire::Sequence StateOf(const std::set<uint32_t>& choices);

  void Placed();
  // The worker is to compute a part of the answer.
  void TakesPart(const Worker& worker);
  // Room is granted: a choice that was to move here has moved.
  void Granted(SequenceRun& run, const Worker& decode, uint32_t blocks_held);
  // The prompt is being computed by `prefill`, or by the decode worker itself; the attempt's
  // number, which what follows names.
  uint32_t AttemptBegan(const Worker& decode, const Worker& prefill);
  void AttemptEnded(uint32_t attempt, const absl::Status& status);
  // Tokens of the prompt that prefill had not to compute.
  void Cached(uint32_t tokens) { cached_tokens_ = tokens; }
  void Transferred(uint32_t attempt, uint64_t kv_bytes) { timeline_.Moved(attempt, kv_bytes); }
  void Pushed(uint32_t attempt, Duration tail) { timeline_.Trailed(attempt, tail); }
  // False where tokens are missing before these.
  bool Push(uint32_t choice, int32_t first_index, std::span<const engine::SampledToken> tokens);
  void Finish(uint32_t choice, engine::EndReason reason);
  // Counts one more try of each; false, and the request has ended, where one had too many.
  bool MayTryAgain(const std::set<uint32_t>& choices, const absl::Status& why);
  // One of them is not to lose its blocks again.
  bool LostBlocksTooOften(const std::set<uint32_t>& choices) const;
  // The choice lost its blocks in `run`, and goes on in another.
  void Preempted(SequenceRun& run, uint32_t choice);
  // The run's worker is draining: look for another place, and stay until it is granted.
  void Move(const std::set<uint32_t>& choices);
  // The run is over; whatever it still held goes on elsewhere, or ends the request if `final`.
  void Left(SequenceRun& run, const absl::Status& why, bool final);
  void End(const absl::Status& status);

 private:
  enum class Cause : uint8_t { kLost, kDrained, kPreempted };
  struct Choice {
    Answer answer;
    SequenceRun* owner = nullptr;      // null: finished, or between two runs
    SequenceRun* candidate = nullptr;  // to take over once it has a grant
    std::string holder;                // incarnation of the decode worker that granted it room
    Cause moves_because = Cause::kLost;
    int32_t preemptions = 0;
    int32_t tries = 0;  // since the last new token
    int32_t taken = 0;  // by the client
    TimePoint last_token;
    bool finished = false;
  };

  RequestFlow(const FlowServices& services, Arrival arrival, ValidRequest request,
              std::shared_ptr<ClientSink> sink, Ended ended);
  SequenceRun* Spawn(std::set<uint32_t> choices, bool resumed);
  void Resume(SequenceRun& run, uint32_t choice, Cause cause, const absl::Status& why);
  void CountResume(const Choice& choice, const Worker& decode);
  void SendStarted(const Worker& decode, uint32_t blocks_held);
  void Send(setu::v1::Delta delta);
  void Acknowledge(uint32_t choice);
  void Observe(Choice& choice, int32_t tokens);
  void MoveAgain(uint32_t number, bool final);
  void EndTrace(const absl::Status& status);
  TimePoint Now() const { return services_.loop.clock().Now(); }

  const FlowServices services_;
  const Arrival arrival_;
  const ValidRequest request_;
  const std::shared_ptr<ClientSink> sink_;
  const Ended on_end_;
  std::vector<Choice> choices_;
  std::vector<SequenceRun*> runs_;  // as they came
  uint32_t streams_ = 0;
  std::set<std::pair<std::string, uint64_t>> numerics_;  // path and digest of the logits, of each
  bool started_ = false;
  bool ended_ = false;
  Timeline timeline_;
  uint32_t cached_tokens_ = 0;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_REQUEST_FLOW_H_
