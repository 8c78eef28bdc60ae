// SPDX-License-Identifier: Apache-2.0
// Every workload file of tests/bench, cut short, against a cluster of processes with a tiny model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "services/cli/commands.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::cli {
namespace {

nlohmann::json RunToJson(Arguments arguments, const std::string& json) {
  arguments.insert(arguments.end(), {"--json", json});
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunBench(arguments), 0) << ::testing::PrintToString(arguments);
  ::testing::internal::GetCapturedStdout();
  std::ifstream in(json);
  return nlohmann::json::parse(in, nullptr, false);
}

TEST(BenchWorkloads, RunInShort) {
  const test::TempDir dir;
  test::ProcessCluster cluster({.model = test::WriteTinyModel(dir)});
  ASSERT_TRUE(cluster.WaitReady());
  const Arguments shortened = {"--address", cluster.address(), "--requests=12", "--duration=6s",
                               "--max-tokens=2..6"};
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/bench/workloads")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    Arguments arguments = shortened;
    arguments.push_back(entry.path());
    std::ifstream in(entry.path());
    const std::string text(std::istreambuf_iterator<char>(in), {});
    // What the tiny model's context of 512 has room for.
    arguments.push_back("--prompt-tokens=16..64");
    if (text.find("prefix-tokens:") != std::string::npos) {
      arguments.push_back("--prefix-tokens=128");
    }
    const nlohmann::json report = RunToJson(arguments, dir.File("r.json"));
    ASSERT_FALSE(report.is_discarded());
    for (const auto& side : report["sides"]) {
      const auto& load = side["workloads"][0];
      EXPECT_GE(load["requests"].value("OK", 0), 1) << entry.path();
      EXPECT_GE(load["generated_tokens"].get<int>(), 2) << entry.path();
    }
  }
  EXPECT_GE(files, 9u);
  EXPECT_EQ(cluster.Quiesce(), "");
}

TEST(BenchWorkloads, CancelsLeaveNothingBehind) {
  const test::TempDir dir;
  test::ProcessCluster cluster({.model = test::WriteTinyModel(dir)});
  ASSERT_TRUE(cluster.WaitReady());
  const nlohmann::json report =
      RunToJson({"--address", cluster.address(), "--requests=40", "--max-tokens=200",
                 "--prompt-tokens=8..64", "--cancel-share=0.5", "--cancel-after=1..20"},
                dir.File("r.json"));
  const auto& requests = report["sides"][0]["workloads"][0]["requests"];
  EXPECT_GE(requests.value("OK", 0), 5);
  EXPECT_GE(requests.value("CANCELLED_BY_PLAN", 0), 5);
  EXPECT_EQ(cluster.Quiesce(), "");
}

}  // namespace
}  // namespace setu::cli
