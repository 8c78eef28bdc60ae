// SPDX-License-Identifier: Apache-2.0
// One Decode stream's life for some choices of a request, straight-line: wait for workers, open,
// prefill until the KV is committed, take tokens to the end. Whatever takes the worker away ends
// the run; its request decides what comes then. On the loop's thread.
#ifndef SETU_SERVICES_ROUTER_SEQUENCE_RUN_H_
#define SETU_SERVICES_ROUTER_SEQUENCE_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/mailbox.h"
#include "common/rpc/task.h"
#include "common/wire/convert.h"
#include "services/router/decode_client.h"
#include "services/router/dispatcher.h"
#include "services/router/prefill_client.h"
#include "services/router/readiness.h"

namespace setu::router {

class RequestFlow;
struct FlowOptions;

class SequenceRun {
 public:
  // A choice has at most this many tokens between decode and the client.
  static constexpr int32_t kMaxUnsent = 256;

  // `resumed`: goes before new prompts. The flow must outlive the run.
  SequenceRun(RequestFlow& flow, std::set<uint32_t> choices, bool resumed);

  static rpc::Task<void> Run(std::shared_ptr<RequestFlow> flow, std::unique_ptr<SequenceRun> run);

  // Those that it still brings tokens for.
  const std::set<uint32_t>& choices() const { return choices_; }
  // The request is over.
  void Stop() { mailbox_.Put(Stopped{}); }
  // The choice has ended or moved away.
  void Release(uint32_t choice) { mailbox_.Put(Released{choice}); }
  // Tokens below `next_index` no longer wait for the client.
  void Took(uint32_t choice, int32_t next_index);

 private:
  struct Stopped {};
  struct Released {
    uint32_t choice = 0;
  };
  struct Taken {
    uint32_t choice = 0;
    int32_t next_index = 0;
  };
  struct FromDecode {
    uint32_t stream = 0;
    DecodeEvent event;
  };
  struct FromPrefill {
    uint32_t attempt = 0;
    PrefillEvent event;
  };
  using Event =
      std::variant<Stopped, Released, Taken, absl::StatusOr<Placed>, FromDecode, FromPrefill>;
  // What a wait came to.
  enum class Turn : uint8_t { kTook, kExpired, kOver };

  rpc::Task<void> GetGrant();
  rpc::Task<void> GetPlace(std::shared_ptr<Worker> granted);
  rpc::Task<void> OpenStream();
  rpc::Task<void> AwaitReady();
  rpc::Task<void> GetKv();
  rpc::Task<void> Retry();
  rpc::Task<void> TakeTokens();
  // Waits for one event and takes it in.
  rpc::Task<Turn> Next(TimePoint deadline);
  Order OrderFor(std::shared_ptr<Worker> granted);
  void StartPrefill();
  void Close();

  void On(const Stopped&) {}
  void On(const Released& event);
  void On(const Taken& event);
  void On(absl::StatusOr<Placed>& event);
  void On(const FromDecode& event);
  void On(const FromPrefill& event);
  void OnDecode(const DecodeReady& event);
  void OnDecode(const DecodeCommitted& event);
  void OnDecode(const DecodeTokens& event);
  void OnDecode(const DecodeEnded& event);
  void OnDecode(const DecodePreempted& event);
  void OnDecode(const DecodeStalled& event);
  void OnDecode(const DecodeDraining& event);
  void OnDecode(const absl::Status& end);
  void KvArrived(uint64_t kv_bytes);
  void OnPrefill(const PrefillFirstTokens& event);
  void OnPrefill(const PrefillPushed& event);
  void OnPrefill(const PrefillPushFailed& event);
  void OnPrefill(const absl::Status& end);

  void Lose(const absl::Status& why);
  void DecodeFailed(const absl::Status& why);
  void Written(bool written);
  bool over() const;
  int32_t first_index() const;  // generated index that this stream starts with
  TimePoint SilenceDeadline() const;
  TimePoint Now() const;
  const FlowOptions& options() const;
  rpc::CallOptions CallFor() const;

  RequestFlow& flow_;
  std::set<uint32_t> choices_;
  bool resumed_;
  rpc::Mailbox<Event> mailbox_;
  std::optional<absl::Status> lost_;  // set: the run is over
  bool final_ = false;                // and so is the request

  std::optional<Dispatcher::Wait> wait_;
  bool placed_ = false;
  Readiness::Spell spell_{};  // when it was
  Claim prefill_claim_;       // until the first token
  Claim decode_claim_;
  Trials trials_;

  wire::Sequence sequence_;          // as opened
  uint32_t stream_ = 0;              // events of earlier streams are dropped,
  uint32_t attempt_ = 0;             // and those of earlier attempts
  uint32_t attempt_of_request_ = 0;  // its number among all runs'
  std::unique_ptr<DecodeClient> decode_;
  bool granted_ = false;
  bool ready_ = false;      // for attempt_
  bool committed_ = false;  // decode holds the KV, of whichever attempt
  bool counted_ = false;    // its bytes are in the request's figures
  uint32_t blocks_held_ = 0;

  bool local_ = false;  // decode computes the prompt itself
  std::shared_ptr<Worker> prefill_worker_;
  std::unique_ptr<PrefillClient> prefill_;
  std::optional<absl::Status> prefill_failed_;
  bool push_failed_ = false;  // and that was why: the way to decode is at fault

  std::map<uint32_t, int32_t> acked_;     // by choice: what decode knows to have left the router
  TimePoint heard_;                       // from decode, or it was told to go on
  std::optional<TimePoint> last_tokens_;  // unless it may have waited since
  Duration step_{0};                      // between tokens, smoothed
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_SEQUENCE_RUN_H_
