// SPDX-License-Identifier: Apache-2.0
// gRPC's and protobuf's own lines, in the log of the process instead of raw on its terminal. They
// have one such place per process: a main function makes one object, before anything of gRPC.
//
//   StderrLogger logger("decode");
//   const rpc::GrpcLog grpc_log(logger);
#ifndef SETU_COMMON_RPC_GRPC_LOG_H_
#define SETU_COMMON_RPC_GRPC_LOG_H_

#include "common/logging/logger.h"

namespace setu::rpc {

class GrpcLog {
 public:
  // Which lines come is for gRPC's GRPC_VERBOSITY to say; only errors without it. `logger` must
  // outlive this.
  explicit GrpcLog(Logger& logger);
  // Both are silent from here on.
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_GRPC_LOG_H_
