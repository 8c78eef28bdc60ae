// SPDX-License-Identifier: Apache-2.0
#include "common/logging/logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace setu {
namespace {

std::string Logged(Logger::Level level, std::string_view message) {
  ::testing::internal::CaptureStderr();
  StderrLogger("prefill").Write(level, message);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Logger, WritesTimeLevelComponentAndMessageOnOneLine) {
  const char* time = R"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)";
  const auto line = [&](const char* rest) {
    return ::testing::MatchesRegex(std::string(time) + rest + "\n");
  };
  EXPECT_THAT(Logged(Logger::Level::kInfo, "drained ms=3"), line(" I prefill drained ms=3"));
  EXPECT_THAT(Logged(Logger::Level::kWarning, "w"), line(" W prefill w"));
  EXPECT_THAT(Logged(Logger::Level::kError, "e"), line(" E prefill e"));
}

TEST(Logger, AMessageCannotBeginALineOfItsOwn) {
  EXPECT_THAT(Logged(Logger::Level::kInfo, "a\nb\rc\x1B[31m"),
              ::testing::EndsWith("prefill a b c [31m\n"));
}

}  // namespace
}  // namespace setu
