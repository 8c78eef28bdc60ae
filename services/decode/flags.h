// SPDX-License-Identifier: Apache-2.0
// What setu-decode is told beside what all workers are (common/worker/worker_flags.h).
//
//   WorkerOptions options;
//   AddTo(declared, options);
//   ...Parse...
#ifndef SETU_SERVICES_DECODE_FLAGS_H_
#define SETU_SERVICES_DECODE_FLAGS_H_

#include "common/config/options.h"
#include "services/decode/options.h"

namespace setu::decode {

// `options` must outlive the parsing.
void AddTo(config::Options& declared, WorkerOptions& options);

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_FLAGS_H_
