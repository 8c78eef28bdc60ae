// SPDX-License-Identifier: Apache-2.0
#include "common/logging/logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/support/full_pipe.h"

namespace setu {
namespace {

constexpr std::chrono::seconds kLimit(20);
constexpr char kTime[] = R"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)";

std::string Logged(Logger::Level level, std::string_view message) {
  ::testing::internal::CaptureStderr();
  StderrLogger("prefill").Write(level, message);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Logger, WritesTimeLevelComponentAndMessageOnOneLine) {
  const auto line = [&](const char* rest) {
    return ::testing::MatchesRegex(absl::StrCat(kTime, rest, "\n"));
  };
  EXPECT_THAT(Logged(Logger::Level::kInfo, "drained ms=3"), line(" I prefill drained ms=3"));
  EXPECT_THAT(Logged(Logger::Level::kWarning, "w"), line(" W prefill w"));
  EXPECT_THAT(Logged(Logger::Level::kError, "e"), line(" E prefill e"));
}

TEST(Logger, AMessageCannotBeginALineOfItsOwn) {
  EXPECT_THAT(Logged(Logger::Level::kInfo, "a\nb\rc\x1B[31m"),
              ::testing::EndsWith("prefill a b c [31m\n"));
}

TEST(Logger, AllLinesAreOutInOrderWhenItEnds) {
  ::testing::internal::CaptureStderr();
  {
    StderrLogger logger("m");
    for (int i = 0; i < 500; ++i) logger.Info(absl::StrCat("line ", i));
  }
  const std::string all = ::testing::internal::GetCapturedStderr();
  size_t at = 0;
  for (int i = 0; i < 500; ++i) {
    at = all.find(absl::StrCat(" I m line ", i, "\n"), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

// Its log is a pipe that is full before the first line.
class UnreadLog : public ::testing::Test {
 protected:
  std::string Read(std::string_view until) { return pipe_.ReadUntil(until, kLimit); }
  void LogTooMuch(int lines_dropped) {
    const int lines = static_cast<int>(StderrLogger::kMaxLines) + lines_dropped;
    for (int i = 0; i < lines; ++i) logger_->Info(absl::StrCat("line ", i, "."));
  }

  test::FullPipe pipe_;
  const test::StandsFor log_{STDERR_FILENO, pipe_};
  std::optional<StderrLogger> logger_{"m"};
};

TEST_F(UnreadLog, HoldsNobodyAndIsWrittenOnceItIsRead) {
  logger_->Info("one");
  logger_->Error("two");
  EXPECT_THAT(Read("two\n"),
              ::testing::MatchesRegex(absl::StrCat(kTime, " I m one\n", kTime, " E m two\n")));
  EXPECT_EQ(logger_->dropped(), 0u);
}

TEST_F(UnreadLog, DropsWhatHasNoRoomAndTheNextLineComesBehindTheirNumber) {
  LogTooMuch(3);
  EXPECT_EQ(logger_->dropped(), 3u);
  const std::string last = absl::StrCat("line ", StderrLogger::kMaxLines - 1, ".\n");
  Read(last);
  logger_->Flush();
  logger_->Info("read again");
  const std::string all = Read("read again\n");
  EXPECT_THAT(all.substr(all.find(last) + last.size()),
              ::testing::MatchesRegex(absl::StrCat(
                  kTime, " W m 3 log lines were lost here: nobody reads them, or they cannot be ",
                  "written\n", kTime, " I m read again\n")));
}

TEST_F(UnreadLog, TellsAtItsEndWhatWasDroppedLast) {
  LogTooMuch(2);
  Read(absl::StrCat("line ", StderrLogger::kMaxLines - 1, ".\n"));
  logger_.reset();
  EXPECT_THAT(Read("cannot be written\n"), ::testing::HasSubstr(" W m 2 log lines were lost"));
}

TEST_F(UnreadLog, KeepsNoMoreBytesThanItMay) {
  const std::string half(StderrLogger::kMaxBytes / 2, 'x');
  logger_->Info(half);
  logger_->Info(half);
  EXPECT_EQ(logger_->dropped(), 1u);
  Read("x\n");
}

TEST_F(UnreadLog, DoesNotKeepItsLoggerFromItsEnd) {
  logger_->Info("never read");
  logger_.reset();
}

TEST_F(UnreadLog, DropsNothingWhereAnotherMadeItNonBlocking) {
  pipe_.SetBlocking(false);
  logger_->Info("one");
  EXPECT_THAT(Read("one\n"), ::testing::EndsWith(" I m one\n"));
}

TEST_F(UnreadLog, WithoutAReaderEndsNoProcess) {
  pipe_.CloseReader();
  logger_->Info("to nobody");
  logger_->Flush();
  EXPECT_EQ(logger_->dropped(), 1u);
}

}  // namespace
}  // namespace setu
