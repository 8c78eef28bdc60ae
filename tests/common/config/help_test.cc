// SPDX-License-Identifier: Apache-2.0
#include "common/config/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace setu::config {
namespace {

using ::testing::HasSubstr;

TEST(Help, ShowsPurposeOptionsAndExamplesWithinAHundredColumns) {
  int32_t tokens = 512;
  bool tls = false;
  Page page{.program = "setu-prefill",
            .purpose = "Computes prompts for a Setu cluster.",
            .examples = {"setu-prefill --model m.gguf"},
            .positional = "FILE",
            .positional_help = "what to read",
            .entries = {}};
  page.entries.emplace_back("chunk-tokens", NumberValue(&tokens),
                            "tokens of one step, of which there are many, so that this sentence "
                            "is too long for one line of the page");
  page.entries.emplace_back("tls", SwitchValue(&tls), "encrypt");
  EXPECT_EQ(Render(page),
            "setu-prefill: Computes prompts for a Setu cluster.\n"
            "\n"
            "Usage: setu-prefill [--option value ...] FILE\n"
            "\n"
            "  FILE              what to read\n"
            "\n"
            "  --chunk-tokens N  tokens of one step, of which there are many, so that this "
            "sentence is too long\n"
            "                    for one line of the page (default 512)\n"
            "  --[no-]tls        encrypt\n"
            "  --help            this page\n"
            "\n"
            "An option --some-name may also stand in the environment (SETU_SOME_NAME) or in the "
            "--config file\n"
            "(some-name: ...). Flags win over the environment, the environment over the file.\n"
            "\n"
            "Examples:\n"
            "  setu-prefill --model m.gguf\n");
}

TEST(Help, AWordThatFitsNoLineStandsAlone) {
  Page page{.program = "p",
            .purpose = "q",
            .examples = {},
            .positional = "",
            .positional_help = "",
            .entries = {}};
  std::string target;
  page.entries.emplace_back("path", TextValue(&target), std::string(200, 'x') + " end");
  EXPECT_THAT(Render(page), HasSubstr(std::string(200, 'x') + "\n"));
}

}  // namespace
}  // namespace setu::config
