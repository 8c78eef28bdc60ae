// SPDX-License-Identifier: Apache-2.0
#include "common/config/known_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <string>

namespace setu::config {
namespace {

std::string Shell(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string said;
  for (int c; (c = fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return said;
}

// Lines of a help page that begin "  --name" or "  --[no-]name".
void AddOptions(const std::string& page, std::set<std::string>& names) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  --")) continue;
    const size_t start = line.starts_with("  --[no-]") ? 9 : 4;
    names.insert(line.substr(start, line.find(' ', start) - start));
  }
}

TEST(KnownNames, AreTheOptionsOfAllPrograms) {
  const std::string folder = SETU_BINARY_DIR "/";
  std::set<std::string> names;
  for (const char* program : {"setu-router", "setu-prefill", "setu-decode"}) {
    AddOptions(Shell(folder + program + " --help"), names);
  }
  for (const char* words :
       {"bench compare", "bench engine", "model inspect", "model synth", "token new"}) {
    AddOptions(Shell(folder + "setu " + words + " --help"), names);
  }
  std::istringstream usage(Shell(folder + "setu --help"));
  for (std::string program, command; usage >> program && program != "Examples:";) {
    if (program != "setu" || !(usage >> command)) continue;
    AddOptions(Shell(folder + "setu " + command + " --help"), names);
  }
  EXPECT_GT(names.size(), 40u);
  names.erase("help");
  EXPECT_THAT(KnownNames(), ::testing::ElementsAreArray(names))
      << "write into common/config/known_names.cc what is missing, in order";
}

TEST(KnownNames, HaveVariables) {
  EXPECT_TRUE(IsKnownVariable("SETU_CHUNK_TOKENS"));
  EXPECT_FALSE(IsKnownVariable("SETU_CHUNK_TOKEN"));
  EXPECT_FALSE(IsKnownVariable("SETU_chunk_tokens"));
  EXPECT_FALSE(IsKnownVariable("SETU_"));
}

}  // namespace
}  // namespace setu::config
