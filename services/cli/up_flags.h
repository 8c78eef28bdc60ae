// SPDX-License-Identifier: Apache-2.0
// What `setu up` is told, and what it tells its processes by it.
//
//   UpFlags flags;
//   flags.AddTo(options);
//   ...Parse...
#ifndef SETU_SERVICES_CLI_UP_FLAGS_H_
#define SETU_SERVICES_CLI_UP_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/config/options.h"
#include "services/cli/supervision.h"

namespace setu::cli {

struct UpFlags {
  std::vector<std::string> model;
  int32_t prefill_workers = 1;
  int32_t decode_workers = 1;
  int32_t port = 50051;
  int32_t metrics_port = 0;
  std::string host = "127.0.0.1";
  std::string numerics = "auto";
  std::string kv_dtype = "auto";
  std::string weights = "auto";
  bool cache_packed = false;
  std::string isa = "auto";
  int32_t threads = 0;
  std::string pin_threads = "auto";
  int64_t kv_memory = 0;
  int64_t kv_shm = 32 << 20;
  bool prefix_cache = true;
  bool local_prefill = false;
  bool allow_mixed_numerics = false;
  int32_t itl_target_ms = 0;
  Duration queue_timeout = std::chrono::seconds(30);
  std::optional<std::string> auth_tokens, cluster_secret;  // files
  std::string otlp_endpoint;                               // empty: no traces
  Duration drain_grace = std::chrono::seconds(60);

  void AddTo(config::Options& options);
  // What all workers are told alike. `pinned`: they have cores of their own.
  std::vector<std::string> WorkerArguments(const Share& share, bool pinned) const;
  // The router's, beside addresses.
  std::vector<std::string> RouterArguments() const;
};

// As a process's argument: "2500ms".
std::string TimeArgument(Duration duration);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_UP_FLAGS_H_
