// SPDX-License-Identifier: Apache-2.0
#include "services/cli/waiting_line.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <string>

namespace setu::cli {
namespace {

class Terminal {
 public:
  Terminal() {
    int there = -1;
    EXPECT_EQ(openpty(&here_, &there, nullptr, nullptr, nullptr), 0);
    file_ = fdopen(there, "w");
  }
  ~Terminal() {
    std::fclose(file_);
    close(here_);
  }
  FILE* file() const { return file_; }
  // What it shows, up to `end`.
  std::string ReadUntil(const std::string& end) const {
    std::string text;
    for (char c; !text.ends_with(end) && read(here_, &c, 1) == 1;) text += c;
    return text;
  }

 private:
  int here_ = -1;
  FILE* file_ = nullptr;
};

TEST(WaitingLine, CountsAndIsErased) {
  const Terminal terminal;
  WaitingLine line(terminal.file(), Duration{});
  EXPECT_EQ(terminal.ReadUntil(" s"), "\rwaiting for the first token: 0 s");
  line.End();
  line.End();
  EXPECT_TRUE(terminal.ReadUntil("\033[K").ends_with("\r\033[K"));
}

TEST(WaitingLine, ShowsNothingWhereTheFirstTokenIsQuick) {
  const Terminal terminal;
  { const WaitingLine line(terminal.file(), std::chrono::hours(1)); }
  std::fputs("next", terminal.file());
  std::fflush(terminal.file());
  EXPECT_EQ(terminal.ReadUntil("next"), "next");
}

TEST(WaitingLine, ShowsNothingWhereNoTerminalIs) {
  FILE* const file = std::tmpfile();
  { const WaitingLine line(file, Duration{}); }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace setu::cli
