// SPDX-License-Identifier: Apache-2.0
#include "common/config/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace setu::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Errors final : public Logger {
 public:
  void Write(Level level, std::string_view message) override {
    if (level == Level::kError) lines.emplace_back(message);
  }
  std::vector<std::string> lines;
};

class ProgramTest : public ::testing::Test {
 protected:
  int Run(std::vector<const char*> argv, const absl::Status& end) {
    Options options("setu-test", "Tests.", {});
    options.Add("size", &size_, "of it");
    argv.insert(argv.begin(), "setu-test");
    return RunProgram(options, static_cast<int>(argv.size()), argv.data(), errors_, [&] {
      served_ = size_;
      return end;
    });
  }

  int32_t size_ = 1;
  int32_t served_ = 0;
  Errors errors_;
};

TEST_F(ProgramTest, ServesWithWhatWasParsed) {
  EXPECT_EQ(Run({"--size", "7"}, absl::OkStatus()), 0);
  EXPECT_EQ(served_, 7);
  EXPECT_THAT(errors_.lines, IsEmpty());
}

TEST_F(ProgramTest, AnErrorIsLoggedAndTheExitCodeOne) {
  EXPECT_EQ(Run({}, absl::UnavailableError("the port is taken")), 1);
  EXPECT_THAT(errors_.lines, ElementsAre("the port is taken"));
}

TEST_F(ProgramTest, DoesNotServeAfterAWrongFlagOrHelp) {
  EXPECT_EQ(Run({"--size", "x"}, absl::OkStatus()), 1);
  EXPECT_THAT(errors_.lines, ElementsAre(HasSubstr("--size")));
  EXPECT_EQ(Run({"--help"}, absl::OkStatus()), 0);
  EXPECT_EQ(served_, 0);
}

}  // namespace
}  // namespace setu::config
