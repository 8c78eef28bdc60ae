// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/sources.h"

namespace setu::config {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

absl::StatusOr<CommandLine> Read(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return ReadCommandLine(static_cast<int>(arguments.size()), arguments.data(),
                         [](const std::string& name) {
                           if (name == "tls") return FlagKind::kSwitch;
                           return name == "model" ? FlagKind::kValue : FlagKind::kUnknown;
                         });
}

TEST(CommandLine, ReadsBothFormsOfAFlag) {
  EXPECT_THAT(Read({"--model", "-m.gguf", "--model=a=b"})->assignments,
              ElementsAre(FieldsAre("model", ElementsAre("-m.gguf"), "--model"),
                          FieldsAre("model", ElementsAre("a=b"), "--model")));
}

TEST(CommandLine, ASwitchTakesNoArgument) {
  const auto line = Read({"--tls", "rest", "--no-tls", "--tls=false"});
  EXPECT_THAT(line->assignments, ElementsAre(FieldsAre("tls", ElementsAre("true"), "--tls"),
                                             FieldsAre("tls", ElementsAre("false"), "--no-tls"),
                                             FieldsAre("tls", ElementsAre("false"), "--tls")));
  EXPECT_THAT(line->positional, ElementsAre("rest"));
}

TEST(CommandLine, ANameThatIsNotKnownComesBackForASuggestion) {
  EXPECT_THAT(Read({"--modle", "x"})->assignments,
              ElementsAre(FieldsAre("modle", ElementsAre("true"), "--modle")));
  EXPECT_THAT(Read({"-m"})->assignments, ElementsAre(FieldsAre("-m", ElementsAre("true"), "-m")));
  EXPECT_THAT(Read({"--no-model"})->assignments,
              ElementsAre(FieldsAre("no-model", ElementsAre("true"), "--no-model")));
}

TEST(CommandLine, AFlagAtTheEndNeedsItsValue) {
  EXPECT_EQ(Read({"--model"}).status().message(), "--model needs a value behind it");
}

TEST(CommandLine, TwoDashesEndTheFlags) {
  const auto line = Read({"a", "-", "--", "--model", "--help"});
  EXPECT_THAT(line->positional, ElementsAre("a", "-", "--model", "--help"));
  EXPECT_FALSE(line->help);
}

TEST(CommandLine, HelpIsAsked) {
  EXPECT_TRUE(Read({"--help"})->help);
  EXPECT_TRUE(Read({"-h"})->help);
}

}  // namespace
}  // namespace setu::config
