// SPDX-License-Identifier: Apache-2.0
#include "services/router/resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace setu::router {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ResolverTest, KnowsNamesFromAddresses) {
  EXPECT_TRUE(NeedsLookup("dns:///setu-decode:50053"));
  EXPECT_TRUE(NeedsLookup("setu-decode.default.svc:50053"));
  EXPECT_FALSE(NeedsLookup("10.0.0.7:50053"));
  EXPECT_FALSE(NeedsLookup("[::1]:50053"));
  EXPECT_FALSE(NeedsLookup("in-process"));
}

TEST(ResolverTest, FindsTheAddressesOfAName) {
  const auto found = LookUp("dns:///127.0.0.1:50053");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, Contains("127.0.0.1:50053"));
  const auto missing = LookUp("no.such.name.invalid:50053");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(missing.status().message(), HasSubstr("no.such.name.invalid:50053"));
}

TEST(ResolverTest, AWorkerOfBothFamiliesIsFoundOnce) {
  EXPECT_THAT(OneFamily({"10.0.0.7:1", "10.0.0.8:1", "[fd00::7]:1", "[fd00::8]:1"}),
              ElementsAre("10.0.0.7:1", "10.0.0.8:1"));
  EXPECT_THAT(OneFamily({"[fd00::7]:1", "[fd00::8]:1"}), ElementsAre("[fd00::7]:1", "[fd00::8]:1"));
  EXPECT_THAT(OneFamily({}), ElementsAre());
}

TEST(ResolverTest, LooksAgainAndAgainAndTellsOfEachLookup) {
  std::mutex mutex;
  std::condition_variable changed;
  int lookups = 0;
  std::vector<std::string> told;
  const Resolver::Lookup lookup =
      [&](const std::string&) -> absl::StatusOr<std::vector<std::string>> {
    if (++lookups == 2) return absl::UnavailableError("for once");
    return std::vector<std::string>{std::to_string(lookups)};
  };
  const Resolver resolver(
      {"name:1"}, std::chrono::milliseconds(1), lookup,
      [&](const std::string& name, const absl::StatusOr<std::vector<std::string>>& addresses) {
        const std::lock_guard lock(mutex);
        told.push_back(addresses.ok() ? name + "=" + addresses->at(0)
                                      : std::string(addresses.status().message()));
        changed.notify_one();
      });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return told.size() >= 3; });
  EXPECT_EQ(told[0], "name:1=1");
  EXPECT_EQ(told[1], "for once");
  EXPECT_EQ(told[2], "name:1=3");
}

}  // namespace
}  // namespace setu::router
