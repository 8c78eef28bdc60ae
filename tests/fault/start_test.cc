// SPDX-License-Identifier: Apache-2.0
// What a service says when it cannot start: one line, before it has looked at its model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/listener.h"
#include "tests/support/temp_dir.h"

namespace setu::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

struct End {
  int code = -1;
  std::string said;
};

End Shell(const std::string& command) {
  FILE* pipe = popen(absl::StrCat(command, " 2>&1").c_str(), "r");
  End end;
  for (int c; (c = fgetc(pipe)) != EOF;) end.said += static_cast<char>(c);
  end.code = WEXITSTATUS(pclose(pipe));
  return end;
}

class Start : public ::testing::TestWithParam<const char*> {
 protected:
  // The model is none, so that whoever looks at it first says so.
  std::string Service() const {
    return absl::StrCat(SETU_BINARY_DIR "/setu-", GetParam(), " --model /nowhere/m.gguf",
                        std::string(GetParam()) == "router" ? " --prefill a:1 --decode b:1" : "");
  }
  void ExpectOneLine(const std::string& command, const std::string& line) const {
    const End end = Shell(command);
    EXPECT_EQ(end.code, 1) << command;
    EXPECT_THAT(end.said, EndsWith(absl::StrCat(" E ", GetParam(), " ", line, "\n")));
    EXPECT_EQ(std::count(end.said.begin(), end.said.end(), '\n'), 1) << end.said;
  }
};

TEST_P(Start, ATakenPortIsToldBeforeTheModelIsLookedAt) {
  auto taken = rpc::Listener::Bind("--listen", "127.0.0.1:0");
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_TRUE(taken->Listen().ok());
  const std::string address = absl::StrCat("127.0.0.1:", taken->port());
  for (const auto& [flag, other] :
       {std::pair("--listen", "--metrics-listen"), std::pair("--metrics-listen", "--listen")}) {
    ExpectOneLine(absl::StrCat(Service(), " ", flag, " ", address, " ", other, " 127.0.0.1:0"),
                  absl::StrCat("cannot listen on ", address, " (", flag,
                               "): Address already in use; stop who uses it, or choose another"));
  }
}

TEST_P(Start, AnAddressThatIsNoneIsRefused) {
  for (const char* flag : {"--listen", "--metrics-listen"}) {
    ExpectOneLine(absl::StrCat(Service(), " ", flag, " localhost:99999"),
                  absl::StrCat(flag,
                               " is 'localhost:99999'; it must be HOST:PORT, with a name, an "
                               "IPv4 address or an [IPv6 address] and a port of 0 to 65535"));
  }
}

TEST_P(Start, EachFlagHasItsVariable) {
  const std::string free = " --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0";
  const End end = Shell(absl::StrCat("SETU_CHANNELZ=1 ", Service(), free));
  EXPECT_THAT(end.said, HasSubstr("/nowhere/m.gguf"));
  ExpectOneLine(absl::StrCat("SETU_channelz=1 ", Service(), free),
                absl::StrCat("SETU_channelz is no option of setu-", GetParam(),
                             "; the nearest is SETU_CHANNELZ (--help lists all)"));
}

TEST_P(Start, AFolderIsNoConfigFile) {
  const TempDir folder;
  ExpectOneLine(absl::StrCat(Service(), " --config ", folder.path()),
                absl::StrCat("cannot read --config file ", folder.path(), ": it is a directory"));
}

using StartOfRouter = Start;

TEST_P(StartOfRouter, TokensNeedASecretThatIsLongEnough) {
  const TempDir folder;
  const std::string tokens = folder.Write("tokens", ""), secret = folder.Write("secret", "short");
  const std::string free = " --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0";
  const std::string with_tokens = absl::StrCat(Service(), free, " --auth-tokens ", tokens);
  ExpectOneLine(with_tokens,
                "--auth-tokens needs --cluster-secret, which keeps the tenants' cached prompts "
                "apart: a file that all routers have; make one: head -c 32 /dev/urandom > FILE");
  ExpectOneLine(absl::StrCat(with_tokens, " --cluster-secret ", secret),
                absl::StrCat("--cluster-secret ", secret,
                             " has 5 bytes; it must have at least 32; make one: head -c 32 "
                             "/dev/urandom > FILE"));
  ExpectOneLine(absl::StrCat(Service(), free, " --cluster-secret ", secret),
                "--cluster-secret is for --auth-tokens; give both, or neither: then all are one "
                "tenant");
}

TEST_P(StartOfRouter, PrefillWorkersAreRequiredUnlessDecodeOnesMayPrefill) {
  const std::string without_prefill = SETU_BINARY_DIR
      "/setu-router --model /nowhere/m.gguf --decode b:1"
      " --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0";
  ExpectOneLine(without_prefill,
                "--prefill is required; or give --local-prefill, and decode workers compute all "
                "prompts");
  EXPECT_THAT(Shell(without_prefill + " --local-prefill").said, HasSubstr("/nowhere/m.gguf"));
}

// Each gets as far as the model, which is not there.
TEST_P(Start, HelpShowsExamplesThatAreRight) {
  const std::string role = GetParam();
  const End help = Shell(absl::StrCat(SETU_BINARY_DIR "/setu-", role, " --help"));
  EXPECT_EQ(help.code, 0);
  const size_t examples = help.said.find("\nExamples:\n  ");
  ASSERT_NE(examples, std::string::npos) << help.said;
  const TempDir folder;
  folder.Write(role + ".yaml",
               role == "router" ? "prefill: [a:1]\ndecode: [b:1]\n" : "threads: 1\n");
  std::istringstream lines(help.said.substr(examples + strlen("\nExamples:\n")));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const End end =
        Shell(absl::StrCat("cd ", folder.path(), " && export PATH=" SETU_BINARY_DIR ":$PATH && ",
                           line, " --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0"));
    EXPECT_THAT(end.said, HasSubstr("m.gguf")) << line;
    EXPECT_EQ(std::count(end.said.begin(), end.said.end(), '\n'), 1) << end.said;
  }
  EXPECT_EQ(count, 3);
}

INSTANTIATE_TEST_SUITE_P(Services, Start, ::testing::Values("router", "prefill", "decode"));
INSTANTIATE_TEST_SUITE_P(Services, StartOfRouter, ::testing::Values("router"));

}  // namespace
}  // namespace setu::test
