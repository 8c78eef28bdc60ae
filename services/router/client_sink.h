// SPDX-License-Identifier: Apache-2.0
// The ways out of a request's flow: to its client, and to whoever measures.
#ifndef SETU_SERVICES_ROUTER_CLIENT_SINK_H_
#define SETU_SERVICES_ROUTER_CLIENT_SINK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "setu/v1/inference.pb.h"

namespace setu::router {

struct FlowEnd {
  absl::Status status;                  // OK only after a Finished of every choice
  std::optional<Duration> retry_after;  // with RESOURCE_EXHAUSTED, where no work was done
  bool placed = false;                  // workers were found for it
  // Per choice: last generated index sent, -1: none. One stands for all choices of a request that
  // was refused before it was admitted.
  std::vector<int32_t> last_index = {-1};
};

// Called on the loop's thread. What is not taken yet is bounded: a choice has at most 256 tokens
// on their way, and RequestFlow::Took says which went on.
class ClientSink {
 public:
  virtual ~ClientSink() = default;
  virtual void Send(const setu::v1::GenerateResponse& response) = 0;
  // Once, last. What was sent before still goes out.
  virtual void End(const FlowEnd& end) = 0;
};

// Of the router's own requests.
class NoSink final : public ClientSink {
 public:
  void Send(const setu::v1::GenerateResponse& /*response*/) override {}
  void End(const FlowEnd& /*end*/) override {}
};

// What is measured and counted. Called on the loop's thread; must not block.
class FlowObserver {
 public:
  virtual ~FlowObserver() = default;
  // Of each choice.
  virtual void FirstToken(Duration /*since_arrival*/) {}
  virtual void InterToken(Duration /*per_token*/, int32_t /*tokens*/) {}
  virtual void Finished(const setu::v1::Finished& /*choice*/) {}
  // A second numeric path has a part in the request: once for each.
  virtual void MixedNumerics() {}
  virtual void Ended(const absl::Status& /*status*/, Duration /*since_arrival*/) {}
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_CLIENT_SINK_H_
