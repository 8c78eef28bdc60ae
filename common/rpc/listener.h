// SPDX-License-Identifier: Apache-2.0
// An address that a process has taken for itself before anyone can connect to it: a server that
// first loads a model learns at once that its port is taken. Also tells whether a port is free.
//
//   SETU_ASSIGN_OR_RETURN(Listener listener, Listener::Bind("--listen", "127.0.0.1:50051"));
//   ...minutes of loading...
//   SETU_ASSIGN_OR_RETURN(auto server,
//                         Server::Start({}, {&service}, std::move(listener), logger));
//
//   SETU_RETURN_IF_ERROR(Listener::Bind("--port", "127.0.0.1:6000").status());  // free just now
#ifndef SETU_COMMON_RPC_LISTENER_H_
#define SETU_COMMON_RPC_LISTENER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/descriptor.h"

namespace setu::rpc {

class Listener {
 public:
  // HOST:PORT on every address that HOST has; port 0 takes a free one. 0.0.0.0 is every IPv4
  // address, [::] every address. INVALID_ARGUMENT or UNAVAILABLE name `flag`, the address, what is
  // wrong and what to do.
  static absl::StatusOr<Listener> Bind(absl::string_view flag, const std::string& address);

  int port() const { return port_; }  // the one that was bound
  // From here on clients connect: they wait until they are accepted. UNAVAILABLE as above.
  absl::Status Listen();
  const std::vector<Descriptor>& sockets() const { return sockets_; }

 private:
  explicit Listener(std::string place) : place_(std::move(place)) {}
  absl::Status Failed(int error) const;

  std::string place_;  // "127.0.0.1:50051 (--listen)"
  std::vector<Descriptor> sockets_;
  int port_ = 0;
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_LISTENER_H_
