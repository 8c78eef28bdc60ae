// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/grpc_log.h"

#include <gmock/gmock.h>
#include <google/protobuf/wrappers.pb.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace setu::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Level = Logger::Level;

class Lines final : public Logger {
 public:
  void Write(Level level, std::string_view message) override {
    lines.emplace_back(level, std::string(message));
  }
  void Flush() override { flushed = lines.size(); }
  std::vector<std::pair<Level, std::string>> lines;
  size_t flushed = 0;
};

TEST(GrpcLog, ItsLinesComeWithTheirSeverityAndPlace) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_INFO);
  Lines log;
  const GrpcLog grpc_log(log);
  gpr_log("src/core/server.cc", 7, GPR_LOG_SEVERITY_ERROR, "no %s", "port");
  gpr_log_message("server.cc", 8, GPR_LOG_SEVERITY_INFO, "told");
  EXPECT_THAT(log.lines, ElementsAre(Pair(Level::kError, "grpc server.cc:7: no port"),
                                     Pair(Level::kInfo, "grpc server.cc:8: told")));
}

TEST(GrpcLog, WhatProtobufThinksOfAMessageComesToo) {
  Lines log;
  const GrpcLog grpc_log(log);
  google::protobuf::StringValue text;
  EXPECT_FALSE(text.ParseFromString("\x0a\x01\xff"));  // field 1 is not UTF-8
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.lines[0].first, Level::kInfo);
  EXPECT_THAT(log.lines[0].second, ::testing::StartsWith("protobuf wire_format_lite.cc:"));
}

// gRPC aborts behind it.
TEST(GrpcLog, ABrokenAssertionIsOutBeforeItEndsTheProcess) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  Lines log;
  const GrpcLog grpc_log(log);
  gpr_log(GPR_ERROR, "no port");
  EXPECT_EQ(log.flushed, 0u);
  // As it says it, without the abort.
  gpr_log(GPR_ERROR, "assertion failed: %s", "port > 0");
  EXPECT_EQ(log.flushed, 2u);
}

TEST(GrpcLog, NothingReachesTheTerminal) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  ::testing::internal::CaptureStderr();
  Lines log;
  {
    const GrpcLog grpc_log(log);
    gpr_log(GPR_ERROR, "during");
  }
  gpr_log(GPR_ERROR, "after");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(log.lines.size(), 1u);
}

}  // namespace
}  // namespace setu::rpc
