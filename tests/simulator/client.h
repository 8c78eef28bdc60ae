// SPDX-License-Identifier: Apache-2.0
// A client with one request: it checks each thing that it is told against the reference, takes
// tokens at its own pace, and may leave.
#ifndef SETU_TESTS_SIMULATOR_CLIENT_H_
#define SETU_TESTS_SIMULATOR_CLIENT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/router/client_sink.h"
#include "services/router/request_flow.h"
#include "services/router/valid_request.h"
#include "tests/simulator/asked.h"
#include "tests/simulator/judge.h"
#include "tests/simulator/router_node.h"

namespace setu::simulator {

// What an answer may end with, beside OK.
struct Excuses {
  bool may_be_refused = false;   // RESOURCE_EXHAUSTED: others ask as well
  bool may_fail = false;         // UNAVAILABLE, ABORTED: there are faults
  bool may_begin_twice = false;  // decode computes prompts before its answer comes, if it comes
  bool may_break = false;        // INTERNAL, DATA_LOSS, INVALID_ARGUMENT: no protocol holds
};

struct Wish {
  std::string name;
  std::string request;  // a serialized GenerateRequest
  router::Share share;
  uint64_t cache_salt = 0;
  Duration patience{0};  // to its deadline
  std::optional<Duration> leaves;
  Duration pause{0};  // between two messages that it takes
  Excuses excuses;
};

class Client final : public router::ClientSink, public std::enable_shared_from_this<Client> {
 public:
  // All outlive it.
  Client(Timeline& timeline, Judge& judge, Asked& asked, router::ValidRequest request, Wish wish);

  // Once, now.
  void Ask(RouterNode& router);
  bool ended() const { return end_.has_value(); }
  const absl::Status& status() const { return *end_; }
  TimePoint deadline() const { return deadline_; }
  const std::string& name() const { return wish_.name; }
  int64_t tokens() const;
  int32_t cached_tokens() const { return cached_tokens_; }  // of its prompt, once finished

  void Send(const setu::v1::GenerateResponse& response) override;
  void End(const router::FlowEnd& end) override;

 private:
  struct Choice {
    std::vector<engine::TokenId> reference;
    int32_t delivered = 0;
    bool finished = false;
  };
  struct Message {
    uint32_t choice = 0;
    int32_t next_index = 0;
  };
  void Take();
  void CheckCached(uint32_t tokens);
  void CheckTimings(const setu::v1::Timings& timings);
  void On(const setu::v1::Delta& delta);
  void On(const setu::v1::Finished& finished);
  void CheckEnd(const router::FlowEnd& end);
  void Blame(const std::string& what);

  Timeline& timeline_;
  Judge& judge_;
  Asked& asked_;
  const Wish wish_;
  std::optional<router::ValidRequest> request_;  // until it is asked
  const bool has_stop_strings_;
  std::vector<Choice> choices_;
  TimePoint asked_at_;
  TimePoint deadline_;
  std::weak_ptr<router::RequestFlow> flow_;
  Node* router_ = nullptr;
  std::deque<Message> untaken_;
  bool taking_ = false;
  std::vector<engine::TokenId> prompt_;
  int32_t cached_tokens_ = 0;
  bool started_ = false;
  bool left_ = false;
  std::optional<absl::Status> end_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_CLIENT_H_
