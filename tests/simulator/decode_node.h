// SPDX-License-Identifier: Apache-2.0
// A decode worker: the real loop, pool, cache and receiver of services/decode over a model that
// pretends. What its RPC adapters do (decode_service.h, kv_transfer_service.h) is done here over
// pipes.
#ifndef SETU_TESTS_SIMULATOR_DECODE_NODE_H_
#define SETU_TESTS_SIMULATOR_DECODE_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "services/decode/options.h"
#include "services/decode/snapshot.h"
#include "setu/worker/v1/decode.pb.h"
#include "setu/worker/v1/kv_transfer.pb.h"
#include "tests/simulator/call.h"
#include "tests/simulator/load_watch.h"
#include "tests/simulator/node.h"

namespace setu::simulator {

struct DecodeSetup {
  decode::WorkerOptions options;
  int32_t blocks = 64;
  int32_t slowness = 1;  // times what a step takes
};

// The worker's end of a call; the pipe keeps it.
class DecodeSession {
 public:
  virtual ~DecodeSession() = default;
  virtual void Take(const worker::v1::DecodeRequest& request) = 0;
};
class PushSession {
 public:
  virtual ~PushSession() = default;
  virtual void Take(const worker::v1::PushKvRequest& part) = 0;
};

class DecodeNode final : public Node {
 public:
  DecodeNode(Timeline& timeline, std::string address, const DecodeSetup& setup);
  ~DecodeNode();

  // At its end of a pipe, when the call has arrived. `done` hears how a push ended.
  std::shared_ptr<DecodeSession> Accept(Answers<worker::v1::DecodeResponse> answers);
  std::shared_ptr<PushSession> AcceptPush(std::shared_ptr<Pipe> pipe,
                                          std::function<void(const absl::Status&)> done);
  LoadReports& reports();
  void Drain();

  // Of its process, if it runs.
  const decode::Snapshot* snapshot() const;

 private:
  struct Process;
  void StartProcess() override;
  void EndProcess() override;
  bool Turn() override;
  std::optional<TimePoint> next_timer() const override;

  const DecodeSetup setup_;
  std::unique_ptr<Process> process_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_DECODE_NODE_H_
