// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/exposer.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "common/metrics/catalogue.h"

namespace setu::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: setu\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
      answer.append(buffer, static_cast<size_t>(n));
    }
  }
  close(fd);
  return answer;
}

TEST(Exposer, ServesWhatTheOwnersReportAtEachScrape) {
  std::atomic<int> steps{1};
  auto exposer = Exposer::Start("127.0.0.1:0", "smollm2", "decode",
                                [&](Scrape& scrape) { scrape.Add(catalogue::kSteps, steps); });
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  ASSERT_GT((*exposer)->port(), 0);
  EXPECT_EQ((*exposer)->url(), absl::StrCat("http://127.0.0.1:", (*exposer)->port(), "/metrics"));
  const std::string first = Get((*exposer)->port(), "/metrics");
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(first, HasSubstr("setu_steps_total{model=\"smollm2\",role=\"decode\"} 1\n"));
  steps = 2;
  EXPECT_THAT(Get((*exposer)->port(), "/metrics"), HasSubstr("role=\"decode\"} 2\n"));
  EXPECT_THAT(Get((*exposer)->port(), "/"), StartsWith("HTTP/1.1 404"));
}

TEST(Exposer, ATakenPortIsAnErrorThatNamesTheAddress) {
  auto first = Exposer::Start("localhost:0", "m", "decode", [](Scrape&) {});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  auto second = Exposer::Start(address, "m", "decode", [](Scrape&) {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
}

TEST(Exposer, AnAddressThatIsNoneIsAnError) {
  for (const char* listen : {"nonsense", "256.1.1.1:0", "127.0.0.1:99999", ""}) {
    EXPECT_EQ(Exposer::Start(listen, "m", "decode", [](Scrape&) {}).status().code(),
              absl::StatusCode::kUnavailable)
        << listen;
  }
}

TEST(Exposer, AHostMayBeAName) {
  const auto exposer = Exposer::Start("LOCALHOST:0", "m", "decode", [](Scrape&) {});
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  EXPECT_THAT(Get((*exposer)->port(), "/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST(Exposer, ThePortIsFreeAgainWhenItIsGone) {
  auto exposer = Exposer::Start("127.0.0.1:0", "m", "decode", [](Scrape&) {});
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  const int port = (*exposer)->port();
  exposer->reset();
  EXPECT_EQ(Get(port, "/metrics"), "");
}

}  // namespace
}  // namespace setu::metrics
