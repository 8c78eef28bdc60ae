// SPDX-License-Identifier: Apache-2.0
#include "services/cli/held_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace setu::cli {

absl::StatusOr<HeldPort> HeldPort::Take() {
  rpc::Descriptor held(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  const int yes = 1;
  // Shared only once it is ours: with SO_REUSEADDR the system might choose what another one holds.
  if (held.get() < 0 || bind(held.get(), any, length) != 0 ||
      getsockname(held.get(), any, &length) != 0 ||
      setsockopt(held.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) {
    return absl::UnavailableError(absl::StrCat("no free port: ", strerror(errno)));
  }
  return HeldPort(std::move(held), ntohs(address.sin_port));
}

}  // namespace setu::cli
