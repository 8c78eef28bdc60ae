// SPDX-License-Identifier: Apache-2.0
// What `setu top` shows: the cluster, what its router did, a line for each worker.
//
//   std::string screen = TopScreen(now, &before, /*seconds=*/1.0);
#ifndef SETU_SERVICES_CLI_TOP_SCREEN_H_
#define SETU_SERVICES_CLI_TOP_SCREEN_H_

#include <string>

#include "setu/v1/cluster.pb.h"

namespace setu::cli {

// `before` is the answer of so many seconds ago, for the rate of transfers; null: not known.
std::string TopScreen(const v1::GetClusterResponse& now, const v1::GetClusterResponse* before,
                      double seconds);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_TOP_SCREEN_H_
