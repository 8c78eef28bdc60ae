// SPDX-License-Identifier: Apache-2.0
// What a worker of either kind says of itself once its model is loaded.
//
//   WorkerService service(Describe(v1::ROLE_PREFILL, *runner, options.incarnation), drain);
//   logger.Info(CapacityLine(*runner, "chunk 512, queue 16"));
#ifndef SETU_COMMON_WORKER_DESCRIPTION_H_
#define SETU_COMMON_WORKER_DESCRIPTION_H_

#include <string>

#include "common/engine/model_runner.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::worker {

// To routers. An empty incarnation becomes a random one: another worker after every start.
v1::DescribeResponse Describe(v1::Role role, engine::Runner& runner,
                              const std::string& incarnation);

// To the log, around what only this kind of worker has: "256 blocks x 16 tokens = 4096 tokens,
// chunk 512, queue 16, int8-g32/kv-f16/r1 on avx512, 2 threads"
std::string CapacityLine(engine::ModelRunner& runner, const std::string& settings);

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_DESCRIPTION_H_
