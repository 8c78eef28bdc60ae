// SPDX-License-Identifier: Apache-2.0
// Policy of the supervisor, apart from processes: how cores and memory are divided, and when a
// process that died is started again. Pure.
#ifndef SETU_SERVICES_CLI_SUPERVISION_H_
#define SETU_SERVICES_CLI_SUPERVISION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/clock.h"

namespace setu::cli {

struct Share {
  int32_t threads = 1;
  int64_t kv_bytes = 0;
};

// Equal parts of cores and of KV memory; at least one thread each.
Share DivideMachine(int32_t cores, int64_t kv_bytes, int32_t workers);

// KV memory of all workers together where nobody says how much: a quarter of the memory, at most
// 4 GiB a worker.
int64_t DefaultKvBytes(int64_t memory_bytes, int32_t workers);

// INVALID_ARGUMENT where --kv-memory and the weights of each worker are more than the memory.
absl::Status CheckKvMemory(int64_t kv_bytes, int64_t weight_bytes, int32_t workers,
                           int64_t memory_bytes);

// Doubles from 0.5 s to 30 s while a process keeps dying; a run of a minute forgets.
class RestartBackoff {
 public:
  // How long to wait before the next start of a process that ran for `lived`.
  Duration AfterDeath(Duration lived);

 private:
  Duration next_ = std::chrono::milliseconds(500);
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_SUPERVISION_H_
