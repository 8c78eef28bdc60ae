// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/logging/logger.h"
#include "tests/support/temp_dir.h"

namespace setu::cli {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

absl::StatusOr<Workload> Make(const std::vector<std::string>& arguments) {
  WorkloadFlags flags;
  config::Options options("test", "", {});
  AddWorkloadFlags(options, &flags);
  std::vector<const char*> argv = {"test"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  NullLogger logger;
  const auto parsed = options.Parse(static_cast<int>(argv.size()), argv.data(), {}, logger);
  if (!parsed.ok()) return parsed.status();
  return MakeWorkload("w", flags);
}

TEST(Workload, WithoutAWordIsAClosedLoopOfEightClientsAndSixtyFourRequests) {
  const auto workload = Make({});
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(std::get<Closed>(workload->arrivals).clients, 8);
  EXPECT_EQ(workload->requests, 64);
  EXPECT_EQ(workload->duration, Duration::max());
  EXPECT_FALSE(workload->prefixes || workload->cancels || workload->times_capacity);
}

TEST(Workload, ArrivesAsItsOptionsSay) {
  EXPECT_EQ(std::get<Poisson>(Make({"--rate=5"})->arrivals).rate, 5);
  EXPECT_EQ(std::get<Fixed>(Make({"--rate=5", "--arrivals=fixed"})->arrivals).rate, 5);
  EXPECT_EQ(std::get<Bursts>(Make({"--rate=5", "--arrivals=bursts", "--burst=7"})->arrivals).size,
            7);
  EXPECT_EQ(std::get<Lockstep>(Make({"--arrivals=lockstep", "--concurrency=3"})->arrivals).clients,
            3);
  const test::TempDir dir;
  EXPECT_EQ(std::get<Trace>(Make({"--trace", dir.Write("t", "0 1 1\n1 2 3\n")})->arrivals)
                .requests->size(),
            2u);
}

TEST(Workload, ClientsSendTheTokenOfItsFile) {
  const test::TempDir dir;
  EXPECT_EQ(Make({})->token, "");
  EXPECT_EQ(Make({"--token-file", dir.Write("t", "setu-secret\n")})->token, "setu-secret");
  const absl::Status none = Make({"--token-file", dir.Write("none", "")}).status();
  EXPECT_THAT(none.message(), HasSubstr("has no token; it must be one word"));
}

TEST(Workload, OfADurationHasNoOtherEnd) {
  const auto workload = Make({"--duration=3s"});
  EXPECT_EQ(workload->duration, seconds(3));
  EXPECT_GT(workload->requests, 1'000'000);
  EXPECT_EQ(Make({"--duration=3s", "--requests=9"})->requests, 9);
}

TEST(Workload, OfAMultipleOfTheCapacityIsMeasuredByItsClientsFirst) {
  const auto workload = Make({"--times-capacity=3", "--concurrency=32"});
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(std::get<Closed>(KneeOf(*workload).arrivals).clients, 32);
  EXPECT_EQ(std::get<Poisson>(AtRate(*workload, 12).arrivals).rate, 12);
}

TEST(Workload, RefusesWhatDoesNotGoTogether) {
  for (const auto& [arguments, said] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--rate=5", "--arrivals=closed"}, "--rate is of fixed, poisson and bursts"},
           {{"--rate=5", "--concurrency=2"}, "--concurrency is of closed loops"},
           {{"--rate=5", "--times-capacity=2"}, "need either --rate or --times-capacity"},
           {{"--arrivals=poisson"}, "need either --rate or --times-capacity"},
           {{"--arrivals=bursts", "--rate=1"}, "need --burst"},
           {{"--burst=2"}, "--burst is of bursts"},
           {{"--arrivals=trace"}, "need --trace"},
           {{"--trace=/no/such/file"}, "cannot read --trace '/no/such/file'"},
           {{"--trace=x", "--rate=1", "--arrivals=poisson"}, "--trace is of a trace"},
           {{"--prefixes=2"}, "go together"},
           {{"--prompt-tokens=none"}, "--prompt-tokens is 'none'"},
           {{"--cancel-share=0.5", "--cancel-after=0"}, "--cancel-after is '0'"},
           {{"--cancel-share=2"}, "--cancel-share is '2'"},
           {{"--arrivals=often"}, "must be one of closed, lockstep"}}) {
    const auto workload = Make(arguments);
    ASSERT_FALSE(workload.ok()) << arguments[0];
    EXPECT_THAT(std::string(workload.status().message()), HasSubstr(said));
  }
}

// The files that figures are measured with can be read, and their README has a command for each.
TEST(Workload, FilesAreReadAndExplained) {
  std::stringstream readme;
  readme << std::ifstream("tests/bench/README.md").rdbuf();
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/bench/workloads")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const auto workload = Make({"--config=" + entry.path().string()});
    EXPECT_TRUE(workload.ok()) << workload.status();
    EXPECT_THAT(readme.str(), HasSubstr(entry.path().stem().string()));
  }
  EXPECT_GE(files, 9u);
}

}  // namespace
}  // namespace setu::cli
