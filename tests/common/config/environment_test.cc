// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/options.h"
#include "common/config/sources.h"

namespace setu::config {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Lines final : public Logger {
 public:
  void Write(Level, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

TEST(Environment, WhateverBeginsLikeOursIsTakenAsItIsWritten) {
  Lines log;
  EXPECT_THAT(ReadEnvironment({"SETU_CHUNK_TOKENS=64", "PATH=/bin", "SETU_LISTEN=a=b",
                               "SETU_=", "SETU_queue=1", "SETUP_KEY=1"},
                              log),
              ElementsAre(FieldsAre("SETU_CHUNK_TOKENS", ElementsAre("64"), "SETU_CHUNK_TOKENS"),
                          FieldsAre("SETU_LISTEN", ElementsAre("a=b"), "SETU_LISTEN"),
                          FieldsAre("SETU_", ElementsAre(""), "SETU_"),
                          FieldsAre("SETU_queue", ElementsAre("1"), "SETU_queue")));
  EXPECT_THAT(log.lines, IsEmpty());
}

TEST(Environment, WhatAnOrchestratorInjectsIsPassedOverWithALogLine) {
  Lines log;
  const std::vector<std::string> injected = {
      "SETU_SERVICE_HOST=10.0.0.1",
      "SETU_DECODE_SERVICE_HOST=10.0.0.1",
      "SETU_DECODE_SERVICE_PORT=50053",
      "SETU_DECODE_SERVICE_PORT_GRPC=50053",
      "SETU_DECODE_PORT=tcp://10.0.0.1:50053",
      "SETU_DECODE_PORT_50053_TCP=tcp://10.0.0.1:50053",
      "SETU_DECODE_PORT_50053_TCP_PROTO=tcp",
      "SETU_DECODE_PORT_50053_TCP_PORT=50053",
      "SETU_DECODE_PORT_50053_TCP_ADDR=10.0.0.1",
  };
  EXPECT_THAT(ReadEnvironment(injected, log), IsEmpty());
  EXPECT_THAT(log.lines, SizeIs(injected.size()));
  EXPECT_THAT(ReadEnvironment({"SETU_PORT=50051"}, log), SizeIs(1)) << "an option of that name";
}

TEST(Environment, VariablesOfTheTestsAreNobodysOptions) {
  Lines log;
  EXPECT_THAT(ReadEnvironment({"SETU_TEST_MODEL=m.gguf"}, log), IsEmpty());
}

TEST(Environment, TheProcessHasOne) {
  ASSERT_EQ(setenv("SETU_TEST_ENVIRONMENT", "yes", 1), 0);
  EXPECT_THAT(ProcessEnvironment(), Contains("SETU_TEST_ENVIRONMENT=yes"));
}

}  // namespace
}  // namespace setu::config
