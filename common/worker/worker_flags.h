// SPDX-License-Identifier: Apache-2.0
// What both kinds of worker are told by flags, and the model they load by it.
//
//   WorkerFlags flags{.listen = "127.0.0.1:50052", .metrics_listen = "127.0.0.1:9465"};
//   flags.AddTo(options);
//   ...Parse...
//   SETU_ASSIGN_OR_RETURN(auto runner,
//                         flags.LoadModel({.max_rows = 512, .max_logits = 64}, logger));
#ifndef SETU_COMMON_WORKER_WORKER_FLAGS_H_
#define SETU_COMMON_WORKER_WORKER_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/config/options.h"
#include "common/engine/model_runner.h"
#include "common/logging/logger.h"
#include "common/rpc/server.h"

namespace setu::worker {

struct WorkerFlags {
  std::string listen;
  std::string metrics_listen;
  std::string model;
  std::string numerics = "auto";
  std::string kv_dtype = "auto";
  std::string weights = "auto";
  bool cache_packed = false;
  std::string isa = "auto";
  int32_t threads = 0;
  std::string pin_threads = "auto";
  int64_t kv_memory = 0;
  bool allow_mixed_numerics = false;
  Duration drain_grace = std::chrono::seconds(60);
  bool channelz = false;
  int32_t max_message_bytes = 4 << 20;  // no flag: what this kind of worker receives

  void AddTo(config::Options& options);
  void AddModelTo(config::Options& options);    // those alone that LoadModel needs
  void AddLoadingTo(config::Options& options);  // of these, all but which model it is
  rpc::ServerOptions server() const;
  // Before the model loads: `listen`, and a look whether `metrics_listen` is free.
  absl::StatusOr<rpc::Listener> TakePorts() const;
  // `options` says what depends on the kind of worker: max_rows, max_logits. Logs progress while
  // that takes longer than a second, and what was loaded.
  absl::StatusOr<std::unique_ptr<engine::ModelRunner>> LoadModel(engine::RunnerOptions options,
                                                                 Logger& logger) const;
};

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_WORKER_FLAGS_H_
