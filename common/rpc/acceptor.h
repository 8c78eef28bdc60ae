// SPDX-License-Identifier: Apache-2.0
// Accepts a listener's connections on a thread of its own, and keeps descriptors back: a process
// whose clients had them all could neither accept again nor reach its workers. gRPC's own listener
// has no such bound and never accepts again after one failure (gRPC 1.51).
//
//   SETU_ASSIGN_OR_RETURN(auto acceptor, Acceptor::Start(std::move(listener), logger,
//                                                        [&](Descriptor connection) {...}));
#ifndef SETU_COMMON_RPC_ACCEPTOR_H_
#define SETU_COMMON_RPC_ACCEPTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "common/logging/logger.h"
#include "common/rpc/descriptor.h"
#include "common/rpc/listener.h"

namespace setu::rpc {

class Acceptor {
 public:
  // On the acceptor's thread. The connection does not block.
  using Take = std::function<void(Descriptor connection)>;

  // Raises this process's limit of descriptors as far as it may. A connection is closed at once,
  // and logged, when it would leave less than an eighth of them (at least 32), or when 16384 are in
  // use. UNAVAILABLE: as Listener::Listen. RESOURCE_EXHAUSTED: there are too few descriptors.
  // `logger` must outlive it.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(Listener listener, Logger& logger,
                                                         Take take);
  // Nothing is taken any more; the port is free.
  ~Acceptor();

 private:
  Acceptor(Listener listener, Descriptor wake, int bound, Logger& logger, Take take);
  void Run();
  void AcceptOne(const Descriptor& socket);
  void Refuse();

  const Listener listener_;
  const Descriptor wake_;  // readable: stop
  const int bound_;        // connections have descriptors below it
  Logger& logger_;
  const Take take_;
  uint64_t refused_ = 0;
  std::thread thread_;
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_ACCEPTOR_H_
