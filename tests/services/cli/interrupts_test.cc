// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a program's user presses it: `setu` as a process, SIGINT from outside.
#include "services/cli/interrupts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "services/cli/process.h"
#include "tests/services/cli/fake_router.h"
#include "tests/support/temp_dir.h"

namespace setu::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit(20);

class Interrupts : public ::testing::Test {
 protected:
  // With its input from a pipe that Type() writes to.
  void Start(const std::vector<std::string>& command) {
    constexpr char kRedirected[] = R"(in=$1 out=$2; shift 2; exec "$@" <"$in" >"$out" 2>&1)";
    const std::string in = dir_.File("in");
    ASSERT_EQ(mkfifo(in.c_str(), 0600), 0);
    std::vector<std::string> arguments = {
        "/bin/sh", "-c", kRedirected, "sh", in, dir_.Write("out", ""), SETU_BINARY_DIR "/setu"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    arguments.insert(arguments.end(), {"--address", router_.address()});
    auto process = Process::Start(arguments);
    ASSERT_TRUE(process.ok()) << process.status();
    setu_.emplace(*std::move(process));
    input_.open(in);
  }
  void Type(const std::string& line) { input_ << line << std::endl; }
  std::string Output() const {
    std::stringstream text;
    text << std::ifstream(dir_.File("out")).rdbuf();
    return text.str();
  }
  bool Shows(const std::string& text, int times = 1) const {
    return test::WaitUntil(kLimit, [&] {
      const std::string output = Output();
      int found = 0;
      for (size_t at = 0; (at = output.find(text, at)) != std::string::npos; ++at) ++found;
      return found >= times;
    });
  }
  std::string WaitEnd() {
    std::optional<ProcessEnd> end;
    test::WaitUntil(kLimit, [&] { return (end = setu_->Ended()).has_value(); });
    return end ? end->Text() : "still running";
  }

  test::TempDir dir_;
  test::FakeRouter router_;
  std::optional<Process> setu_;
  std::ofstream input_;
};

TEST_F(Interrupts, EndAnAnswerOfAChatAndLeaveAtItsPrompt) {
  router_.deltas = {test::DeltaOf(0, "Hello", 4, -1)};
  router_.holds_from = 1;
  Start({"chat"});
  Type("one");
  ASSERT_TRUE(Shows("Hello")) << Output();
  setu_->Signal(SIGINT);
  ASSERT_TRUE(Shows("(ended by Ctrl-C)\n> ")) << Output();
  Type("two");
  ASSERT_TRUE(test::WaitUntil(kLimit, [&] { return router_.requests().size() == 2; }));
  std::vector<std::string> said;
  const v1::GenerateRequest second = router_.requests()[1];
  for (const v1::ChatMessage& message : second.chat().messages()) {
    said.push_back(message.content());
  }
  EXPECT_THAT(said, ElementsAre("one", "Hello", "two"));
  setu_->Signal(SIGINT);
  // Signals that meet become one: the next goes when this one has done its work.
  ASSERT_TRUE(Shows("(ended by Ctrl-C)\n> ", 2)) << Output();
  setu_->Signal(SIGINT);
  EXPECT_EQ(WaitEnd(), "signal 2 (Interrupt)");
}

TEST_F(Interrupts, EndALoadWithTheReportOfWhatEnded) {
  router_.deltas = {test::DeltaOf(0, "Hello", 4, -1)};
  router_.holds_from = 3;
  Start({"bench", "--requests=9", "--concurrency=1"});
  ASSERT_TRUE(test::WaitUntil(kLimit, [&] { return router_.requests().size() == 3; }));
  setu_->Signal(SIGINT);
  EXPECT_EQ(WaitEnd(), "exit 130");
  EXPECT_THAT(Output(), HasSubstr(" s, 2 OK\n"));
}

TEST_F(Interrupts, EndALoadThatWaitsForItsNextArrival) {
  Start({"bench", "--requests=2", "--rate=0.0001"});
  ASSERT_TRUE(test::WaitUntil(kLimit, [&] { return router_.tokenized(); }));
  setu_->Signal(SIGINT);
  EXPECT_EQ(WaitEnd(), "exit 130");
  EXPECT_THAT(router_.requests(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace setu::cli
