// SPDX-License-Identifier: Apache-2.0
// The clients of one workload in one round: sends what its pace lets start, tallies what comes
// back. It lives on the loop's thread alone.
#ifndef SETU_SERVICES_CLI_LOAD_CLIENT_GROUP_H_
#define SETU_SERVICES_CLI_LOAD_CLIENT_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "services/cli/load/load_client.h"
#include "services/cli/load/pace.h"
#include "services/cli/load/plan.h"
#include "services/cli/load/tally.h"

namespace setu::cli {

// What the groups of a round share.
struct RoundContext {
  rpc::EventLoop& loop;
  LoadClient& client;
  std::span<const uint32_t> vocabulary;  // ids that prompts are made of
  TimePoint begin;                       // of the round; plans count from it
  int64_t most_open;                     // streams, of all groups
  int64_t open = 0;
  std::function<void()> on_end;  // after each request
};

class ClientGroup {
 public:
  // Context and workload must outlive the group. `on_over` is called once, after the last end.
  ClientGroup(RoundContext& context, const Workload& workload, const Seeds& seeds,
              TimePoint timeline_start, std::function<void()> on_over);

  void Start() { Pump(); }
  // Breaks off what is open, uncounted; on_over is called where it was not yet.
  void Stop();
  Tally TakeTally() { return std::move(tally_); }

 private:
  struct Exchange {
    RequestTrack track;
    std::optional<int32_t> cancel_after;
    std::unique_ptr<LoadClient::Stream> stream;
  };

  Duration Elapsed() const { return context_.loop.clock().Now() - context_.begin; }
  void Pump();
  void Send(int64_t index, Duration planned);
  v1::GenerateRequest MakeRequest(int64_t index, const PlannedRequest& request) const;
  int64_t Reusable(const PlannedRequest& request);
  void OnResponse(int64_t index, const v1::GenerateResponse& response);
  void End(int64_t index, const std::string& status, const std::string& error);
  void BeOver();

  RoundContext& context_;
  const Workload& workload_;
  const Plan plan_;
  Pace pace_;
  Tally tally_;
  std::function<void()> on_over_;               // empty once it was called
  std::unordered_map<int64_t, Exchange> open_;  // by the request's index
  std::vector<bool> sent_prefixes_;
  bool all_sent_ = false;
  std::optional<rpc::EventLoop::Timer> timer_;  // of the next arrival
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_CLIENT_GROUP_H_
