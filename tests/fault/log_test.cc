// SPDX-License-Identifier: Apache-2.0
// A cluster whose output is a full pipe that nobody reads starts, serves, survives and ends.
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>

#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/full_pipe.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

TEST(UnreadOutput, CostsNoAnswerAndKeepsNoProcessFromItsEnd) {
  const TempDir dir;
  const std::string model = WriteTinyModel(dir);
  const std::vector<uint32_t> expected = ReferenceIds({.model = model}, LongRequest());
  const FullPipe pipe;
  std::optional<ProcessCluster> cluster;
  {
    const StandsFor out(STDOUT_FILENO, pipe);
    const StandsFor err(STDERR_FILENO, pipe);
    cluster.emplace(ProcessCluster::Options{.model = model, .decode_workers = 2});
  }
  ASSERT_TRUE(cluster->WaitReady());
  cluster->Kill("decode-0");
  // The router has logged it.
  ASSERT_TRUE(cluster->WaitSeen("decode"));
  Answer answer = Generate(cluster->stub(), LongRequest());
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
  const auto all = {"router", "prefill-0", "decode-1"};
  for (const char* name : all) {
    EXPECT_EQ(cluster->Metric(name, "setu_log_lines_dropped_total"), 0) << name;
    cluster->Signal(name, SIGTERM);
  }
  for (const char* name : all) {
    EXPECT_EQ(cluster->WaitEnd(name, std::chrono::seconds(10)), "exit 0") << name;
  }
}

}  // namespace
}  // namespace setu::test
