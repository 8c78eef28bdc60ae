// SPDX-License-Identifier: Apache-2.0
// absl::Status <-> grpc::Status, with the details that clients act on.
#ifndef SETU_COMMON_RPC_STATUS_H_
#define SETU_COMMON_RPC_STATUS_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "common/base/clock.h"

namespace setu::rpc {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status ToAbsl(const grpc::Status& status);
// RESOURCE_EXHAUSTED with google.rpc.RetryInfo, and the trailer grpc-retry-pushback-ms.
grpc::Status Exhausted(const std::string& message, Duration retry_after,
                       grpc::ServerContextBase& context);

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_STATUS_H_
