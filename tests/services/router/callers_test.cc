// SPDX-License-Identifier: Apache-2.0
#include "services/router/callers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/keeping_logger.h"
#include "tests/support/temp_dir.h"

namespace setu::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CallersTest : public ::testing::Test {
 protected:
  static std::string Line(const std::string& token, const std::string& whose) {
    return absl::StrCat(rpc::HexOf(rpc::DigestOf(token)), ": ", whose, "\n");
  }
  void Write(const std::string& text) { dir_.Write("tokens", text); }
  void Open(const std::string& text) {
    Write(text);
    auto callers = Callers::FromFile(dir_.File("tokens"), std::string(32, 's'), logger_);
    ASSERT_TRUE(callers.ok()) << callers.status();
    callers_ = *std::move(callers);
  }
  // The file as it is now counts.
  void LookTwice() {
    callers_->Look();
    callers_->Look();
  }
  Caller Known(const std::string& token) {
    const auto caller = callers_->Identify(token);
    EXPECT_TRUE(caller.ok()) << caller.status();
    return caller.value_or(Caller(nullptr, Priority::kNormal));
  }
  bool IsKnown(const std::string& token) { return callers_->Identify(token).ok(); }

  test::TempDir dir_;
  test::KeepingLogger logger_;
  std::unique_ptr<Callers> callers_;
};

TEST_F(CallersTest, SeveralTokensNameOneTenant) {
  Open("acme: [weight=3]\nlab: []\n" + Line("a", "[acme, high]") + Line("b", "[acme, low]") +
       Line("c", "lab"));
  EXPECT_EQ(Known("a").tenant, Known("b").tenant);
  EXPECT_NE(Known("a").tenant, Known("c").tenant);
  EXPECT_NE(Known("a").tenant->number(), Known("c").tenant->number());
  EXPECT_EQ(Known("a").priority, Priority::kHigh);
  EXPECT_EQ(Known("b").priority, Priority::kLow);
  EXPECT_EQ(Known("a").tenant->weight(), 3u);
  EXPECT_EQ(callers_->figures().tokens, 3u);
}

TEST_F(CallersTest, OneAnswerForEveryCause) {
  Open("acme: []\n" + Line("secret", "acme"));
  std::set<std::string> answers;
  const std::vector<std::optional<std::string>> wrongs = {
      std::nullopt, "", "secreT", "secret ", "acme", rpc::HexOf(rpc::DigestOf("secret"))};
  for (const auto& wrong : wrongs) {
    answers.insert(callers_->Identify(wrong).status().ToString());
  }
  EXPECT_THAT(answers, ElementsAre(HasSubstr("UNAUTHENTICATED: no valid token")));
  EXPECT_EQ(callers_->figures().refused, 6u);
}

TEST_F(CallersTest, TakesTheFileAsItBecomes) {
  Open("acme: [weight=2]\n" + Line("old", "acme"));
  const Caller before = Known("old");
  Write("acme: [weight=5]\nlab: []\n" + Line("old", "acme") + Line("new", "[acme, high]"));
  EXPECT_FALSE(IsKnown("new")) << "not before it is looked at";
  LookTwice();
  EXPECT_EQ(Known("new").tenant, before.tenant) << "both, for a while";
  EXPECT_EQ(before.tenant->weight(), 5u);
  Write("acme: []\n" + Line("new", "acme"));
  LookTwice();
  EXPECT_FALSE(IsKnown("old"));
  EXPECT_TRUE(IsKnown("new"));
  EXPECT_EQ(logger_.lines("tokens").size(), 3u);
}

// An editor empties the file before it writes it: both are right, and one lets nobody in.
TEST_F(CallersTest, AFileThatIsBeingWrittenDoesNotCount) {
  const std::string whole = "acme: []\n" + Line("a", "acme");
  Open(whole);
  const Caller before = Known("a");
  for (const std::string& part : {std::string(), std::string("acme: [")}) {
    Write(part);
    callers_->Look();
    EXPECT_TRUE(IsKnown("a"));
    EXPECT_FALSE(callers_->figures().stale);
  }
  Write(whole + Line("b", "acme"));
  callers_->Look();
  EXPECT_FALSE(IsKnown("b"));
  callers_->Look();
  EXPECT_TRUE(IsKnown("b"));
  EXPECT_EQ(Known("a").tenant, before.tenant) << "with all that it has under way";
  Write("");
  LookTwice();
  EXPECT_FALSE(IsKnown("a")) << "it was meant";
}

TEST_F(CallersTest, AWrongFileChangesNothingAndIsToldOnce) {
  Open("acme: []\n" + Line("a", "acme"));
  Write("acme: [\n");
  callers_->Look();
  for (int i = 0; i < 3; ++i) {
    callers_->Look();
    EXPECT_TRUE(IsKnown("a"));
    EXPECT_TRUE(callers_->figures().stale);
  }
  EXPECT_THAT(logger_.lines("stay"), ElementsAre(HasSubstr("E the tokens stay as they were: ")));
  std::filesystem::remove(dir_.File("tokens"));
  callers_->Look();
  EXPECT_TRUE(IsKnown("a"));
  EXPECT_EQ(logger_.lines("stay").size(), 2u) << "another cause";
  Write("acme: []\n" + Line("a", "acme"));
  LookTwice();
  EXPECT_FALSE(callers_->figures().stale);
  EXPECT_THAT(logger_.lines("right again").size(), 1u);
}

TEST_F(CallersTest, AnswersWhileItTakesAnotherFile) {
  Open("acme: []\n" + Line("a", "acme"));
  std::atomic<bool> over = false;
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      do {
        EXPECT_TRUE((*Visit::Enter(Known("a"), TimePoint()))->share().weight > 0);
        EXPECT_FALSE(IsKnown("b"));
      } while (!over);
    });
  }
  for (int weight = 1; weight <= 20; ++weight) {
    Write(absl::StrCat("acme: [weight=", weight, "]\nlab: []\n") + Line("a", "acme"));
    LookTwice();
  }
  over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(Known("a").tenant->weight(), 20u);
}

TEST_F(CallersTest, NoTokenReachesTheLog) {
  const std::string token = rpc::NewToken();
  Open("acme: []\n" + Line(token, "acme"));
  EXPECT_TRUE(IsKnown(token));
  EXPECT_FALSE(IsKnown(token + "x"));
  Write(token + ": acme\n");
  LookTwice();
  EXPECT_TRUE(callers_->figures().stale);
  EXPECT_TRUE(logger_.lines(token).empty());
  EXPECT_FALSE(logger_.lines("").empty());
}

TEST_F(CallersTest, AWrongFileAtTheStartIsAnError) {
  Write("acme: 1\n");
  EXPECT_EQ(Callers::FromFile(dir_.File("tokens"), "", logger_).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Callers::FromFile(dir_.File("none"), "", logger_).status().message(),
              HasSubstr("cannot read --auth-tokens file"));
}

// RFC 4231, test case 2: HMAC-SHA-256 is 5bdcc146bf60754e 6a042426089575c7 ...
TEST(CacheSalt, IsTheHeadOfHmacSha256) {
  EXPECT_EQ(CacheSalt("Jefe", "what do ya want for nothing?"), 0x5bdcc146bf60754eu);
}

TEST_F(CallersTest, EachTenantHasASaltOfItsOwnThatFollowsTheSecret) {
  Open("acme: []\nlab: []\n" + Line("a", "acme") + Line("c", "lab"));
  EXPECT_EQ(Known("a").tenant->cache_salt(), CacheSalt(std::string(32, 's'), "acme"));
  EXPECT_NE(Known("a").tenant->cache_salt(), Known("c").tenant->cache_salt());
  EXPECT_NE(CacheSalt(std::string(32, 's'), "acme"), CacheSalt(std::string(32, 't'), "acme"));
}

TEST(ClusterSecret, HasAtLeast32Bytes) {
  test::TempDir dir;
  EXPECT_EQ(ReadClusterSecret(dir.Write("s", std::string(32, '\0')))->size(), 32u);
  const auto shorter = ReadClusterSecret(dir.Write("s", std::string(31, 'x')));
  EXPECT_EQ(shorter.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(shorter.status().message(), HasSubstr("has 31 bytes; it must have at least 32"));
  EXPECT_THAT(shorter.status().message(), HasSubstr("head -c 32 /dev/urandom"));
  EXPECT_FALSE(ReadClusterSecret(dir.File("none")).ok());
}

}  // namespace
}  // namespace setu::router
