// SPDX-License-Identifier: Apache-2.0
// Whose a TCP connection of the loopback is, as /proc has it (proc(5)): so a proxy tells apart the
// processes that connect to it.
#ifndef SETU_TESTS_FAULT_SOCKET_OWNER_H_
#define SETU_TESTS_FAULT_SOCKET_OWNER_H_

#include <sys/types.h>

namespace setu::test {

// The process with the end at `port` of the connection to `peer_port`; 0 where it is closed already
// or not ours to see.
pid_t OwnerOfConnection(int port, int peer_port);

}  // namespace setu::test

#endif  // SETU_TESTS_FAULT_SOCKET_OWNER_H_
