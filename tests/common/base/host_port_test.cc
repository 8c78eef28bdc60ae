// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_port.h"

#include <gtest/gtest.h>

namespace setu {
namespace {

TEST(HostPort, TakesNamesAndAddresses) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } cases[] = {{"127.0.0.1:50051", "127.0.0.1", 50051},
               {"[::1]:1", "::1", 1},
               {"[::]:65535", "::", 65535},
               {"localhost:80", "localhost", 80},
               {"setu_decode-0.setu.svc.cluster.local.:50053",
                "setu_decode-0.setu.svc.cluster.local.", 50053}};
  for (const auto& [text, host, port] : cases) {
    const auto at = ParseHostPort(text, 1);
    ASSERT_TRUE(at.ok()) << text << ": " << at.status();
    EXPECT_EQ(at->host, host);
    EXPECT_EQ(at->port, port);
  }
}

TEST(HostPort, RefusesWhatIsNone) {
  const std::string long_name(254, 'a');
  for (const std::string& text : {std::string(""),
                                  std::string(":"),
                                  std::string(":80"),
                                  std::string("host"),
                                  std::string("host:"),
                                  std::string("host:x"),
                                  std::string("host:+80"),
                                  std::string("host: 80"),
                                  std::string("host:65536"),
                                  std::string("host:99999999999999999"),
                                  std::string("::1:80"),
                                  std::string("[::1:80"),
                                  std::string("[]:80"),
                                  std::string("[host]:80"),
                                  std::string("256.1.1.1:80"),
                                  std::string("1.2.3:80"),
                                  std::string("a b:80"),
                                  std::string("http://a:80"),
                                  std::string("a,b:80"),
                                  std::string("-a:80"),
                                  std::string(".a:80"),
                                  std::string("a\0b:80", 6),
                                  std::string("[::1\0]:80", 9),
                                  long_name + ":80"}) {
    const auto at = ParseHostPort(text, 0);
    EXPECT_EQ(at.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(HostPort, SaysWhichPortsThereAre) {
  EXPECT_TRUE(ParseHostPort("a:0", 0).ok());
  EXPECT_EQ(ParseHostPort("a:0", 1).status().message(),
            "must be HOST:PORT, with a name, an IPv4 address or an [IPv6 address] and a port of 1 "
            "to 65535");
}

}  // namespace
}  // namespace setu
