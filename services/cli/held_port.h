// SPDX-License-Identifier: Apache-2.0
// A TCP port of the loopback for a process that is about to be started, and started again: kept
// from everyone else, also from what asks the system for any port, until this goes.
//
//   SETU_ASSIGN_OR_RETURN(const HeldPort port, HeldPort::Take());
//   Process::Start({"setu-decode", "--listen", absl::StrCat("127.0.0.1:", port.number())});
//
// Bound and never listening: who binds it too with SO_REUSEADDR, as rpc::Listener and the metrics'
// HTTP server do, may listen; binding without it fails, and so would a second listener (ip(7)).
#ifndef SETU_SERVICES_CLI_HELD_PORT_H_
#define SETU_SERVICES_CLI_HELD_PORT_H_

#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/descriptor.h"

namespace setu::cli {

class HeldPort {
 public:
  static absl::StatusOr<HeldPort> Take();
  int number() const { return number_; }

 private:
  HeldPort(rpc::Descriptor socket, int number) : socket_(std::move(socket)), number_(number) {}

  rpc::Descriptor socket_;
  int number_;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_HELD_PORT_H_
