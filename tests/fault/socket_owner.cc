// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/socket_owner.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace setu::test {
namespace {

namespace fs = std::filesystem;

// "0100007F:C383": an address and a port in hex.
int PortIn(const std::string& end) {
  int port = 0;
  return absl::SimpleHexAtoi(end.substr(end.find(':') + 1), &port) ? port : -1;
}

// "0" where there is none. IPv6 sockets may speak IPv4 too, as gRPC's do.
std::string InodeOf(int port, int peer_port) {
  for (const char* kind : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream table(kind);
    for (std::string line; std::getline(table, line);) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues, timer, retries, user, timeout, inode;
      fields >> number >> local >> remote >> state >> queues >> timer >> retries >> user >>
          timeout >> inode;
      if (PortIn(local) == port && PortIn(remote) == peer_port) return inode;
    }
  }
  return "0";
}

bool Has(const fs::path& process, const std::string& file) {
  std::error_code error;
  for (fs::directory_iterator fd(process / "fd", error), end; !error && fd != end;
       fd.increment(error)) {
    std::error_code closed;
    if (fs::read_symlink(fd->path(), closed) == file) return true;
  }
  return false;
}

}  // namespace

pid_t OwnerOfConnection(int port, int peer_port) {
  const std::string inode = InodeOf(port, peer_port);
  if (inode == "0") return 0;
  const std::string file = absl::StrCat("socket:[", inode, "]");
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(process->path().filename().string(), &pid)) continue;
    if (Has(process->path(), file)) return pid;
  }
  return 0;
}

}  // namespace setu::test
