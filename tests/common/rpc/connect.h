// SPDX-License-Identifier: Apache-2.0
// A bare TCP connection to a port of the loopback, for what no gRPC client would do.
#ifndef SETU_TESTS_COMMON_RPC_CONNECT_H_
#define SETU_TESTS_COMMON_RPC_CONNECT_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/rpc/descriptor.h"

namespace setu::rpc {

inline Descriptor Connect(int port) {
  Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return client;
}

}  // namespace setu::rpc

#endif  // SETU_TESTS_COMMON_RPC_CONNECT_H_
