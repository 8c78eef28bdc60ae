// SPDX-License-Identifier: Apache-2.0
#include "tests/support/lan.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint16_t kPort = 5000;
constexpr std::chrono::seconds kSoon(20);

sockaddr_in At(const std::string& address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kPort);
  EXPECT_EQ(inet_pton(AF_INET, address.c_str(), &at.sin_addr), 1);
  return at;
}

class LanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Lan>> lan = Lan::Make({"a", "b", "c"});
    if (!lan.ok()) GTEST_SKIP() << lan.status().message();
    lan_ = *std::move(lan);
    for (const char* host : {"a", "b"}) sockets_.emplace(host, Open(host, SOCK_DGRAM));
  }
  // At the host's address.
  rpc::Descriptor Open(const std::string& host, int kind) const {
    rpc::Descriptor opened(-1);
    lan_->Run(host, [&] { opened = rpc::Descriptor(socket(AF_INET, kind | SOCK_CLOEXEC, 0)); });
    const sockaddr_in at = At(lan_->AddressOf(host));
    EXPECT_EQ(bind(opened.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    return opened;
  }
  void Send(const std::string& from, const std::string& to, const std::string& text) const {
    const sockaddr_in at = At(lan_->AddressOf(to));
    EXPECT_EQ(sendto(sockets_.at(from).get(), text.data(), text.size(), 0,
                     reinterpret_cast<const sockaddr*>(&at), sizeof at),
              static_cast<ssize_t>(text.size()));
  }
  // The datagrams up to the last one.
  std::vector<std::string> TakeUntil(const std::string& at, const std::string& last) const {
    std::vector<std::string> taken;
    while (taken.empty() || taken.back() != last) taken.push_back(Next(at));
    return taken;
  }
  std::string Next(const std::string& at) const {
    char text[2000];
    const ssize_t bytes = recv(sockets_.at(at).get(), text, sizeof text, 0);
    return std::string(text, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  }

  std::unique_ptr<Lan> lan_;
  std::map<std::string, rpc::Descriptor> sockets_;
};

TEST_F(LanTest, PassesBothWaysInOrder) {
  for (const char* text : {"one", "two", "three"}) Send("a", "b", text);
  EXPECT_THAT(TakeUntil("b", "three"), ElementsAre("one", "two", "three"));
  Send("b", "a", "back");
  EXPECT_EQ(Next("a"), "back");
  EXPECT_EQ(lan_->counts("a", "b").passed, 3u);
  EXPECT_EQ(lan_->counts("b", "a").passed, 1u);
}

TEST_F(LanTest, LosesTheWayThatItIsToldAlone) {
  lan_->Harm("a", "b", {.lost = 1});
  Send("a", "b", "never");
  Send("b", "a", "back");
  EXPECT_EQ(Next("a"), "back");
  ASSERT_TRUE(WaitUntil(kSoon, [&] { return lan_->counts("a", "b").lost > 0; }));
  lan_->Heal();
  Send("a", "b", "healed");
  EXPECT_EQ(Next("b"), "healed");
}

TEST_F(LanTest, LosesASharePerPacket) {
  lan_->Harm("a", "b", {.lost = 0.5});
  for (int i = 0; i < 100; ++i) Send("a", "b", "some");
  ASSERT_TRUE(WaitUntil(
      kSoon, [&] { return lan_->counts("a", "b").lost + lan_->counts("a", "b").passed >= 100; }));
  const uint64_t passed = lan_->counts("a", "b").passed;
  lan_->Heal();
  Send("a", "b", "end");
  EXPECT_GT(passed, 20u);
  EXPECT_LT(passed, 80u);
  EXPECT_THAT(TakeUntil("b", "end"), SizeIs(passed + 1));
}

TEST_F(LanTest, LongPacketsVanish) {
  lan_->Harm("a", "b", {.longest = 200});
  Send("a", "b", std::string(300, 'x'));
  Send("a", "b", "short");
  EXPECT_EQ(Next("b"), "short");
  EXPECT_EQ(lan_->counts("a", "b").lost, 1u);
}

TEST_F(LanTest, DelayedOnesOvertake) {
  lan_->Harm("a", "b", {.delay = std::chrono::milliseconds(20)});
  std::vector<std::string> sent, taken;
  for (int i = 0; i < 50; ++i) {
    sent.push_back(absl::StrCat(i));
    Send("a", "b", sent.back());
  }
  for (int i = 0; i < 50; ++i) taken.push_back(Next("b"));
  EXPECT_NE(taken, sent);
  EXPECT_THAT(taken, ::testing::UnorderedElementsAreArray(sent));
  EXPECT_GT(lan_->counts("a", "b").overtaken, 0u);
}

TEST_F(LanTest, DoubledOnesArriveTwice) {
  lan_->Harm("a", "b", {.doubled = 1});
  Send("a", "b", "twin");
  EXPECT_EQ(Next("b"), "twin");
  EXPECT_EQ(Next("b"), "twin");
}

TEST_F(LanTest, AHostAloneIsReachedByNobody) {
  lan_->HarmAll("b", {.lost = 1});
  Send("a", "b", "in");
  Send("b", "a", "out");
  ASSERT_TRUE(WaitUntil(
      kSoon, [&] { return lan_->counts("a", "b").lost > 0 && lan_->counts("b", "a").lost > 0; }));
  EXPECT_EQ(lan_->counts("a", "b").passed + lan_->counts("b", "a").passed, 0u);
}

// The kernel's TCP makes up for all that.
TEST_F(LanTest, AConnectionOverABadLinkIsWhole) {
  lan_->HarmBoth("a", "b", {.lost = 0.05, .doubled = 0.05, .delay = std::chrono::milliseconds(2)});
  const rpc::Descriptor listener = Open("b", SOCK_STREAM), client = Open("a", SOCK_STREAM);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  std::string sent(200'000, ' ');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * i >> 8);
  std::future<std::string> received = std::async(std::launch::async, [&] {
    const rpc::Descriptor server(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string all(sent.size(), ' ');
    EXPECT_EQ(recv(server.get(), all.data(), all.size(), MSG_WAITALL),
              static_cast<ssize_t>(all.size()));
    return all;
  });
  const sockaddr_in to = At(lan_->AddressOf("b"));
  ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(send(client.get(), sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
  EXPECT_TRUE(received.get() == sent);
  EXPECT_GT(lan_->counts("a", "b").lost, 0u);
}

}  // namespace
}  // namespace setu::test
