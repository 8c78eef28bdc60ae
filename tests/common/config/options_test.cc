// SPDX-License-Identifier: Apache-2.0
#include "common/config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace setu::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Outcome = Options::Outcome;

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    options_.Add("model", &model_, "GGUF file").Required();
    options_.Add("decode", &decode_, "decode workers");
    options_.AddRepeated("stop", &stop_, "texts that end the answer");
    options_.Add("chunk-tokens", &chunk_tokens_, "tokens of one step").Range(16, 8192);
    options_.Add("tls", &tls_, "encrypt");
    options_.Add("drain-grace", &grace_, "how long SIGTERM waits");
    options_.Add("top-k", &top_k_, "candidates");
    options_.AddBytes("kv-memory", &memory_, "memory of the KV pool");
  }

  absl::StatusOr<Outcome> Parse(std::vector<const char*> arguments,
                                const std::vector<std::string>& environment = {}) {
    arguments.insert(arguments.begin(), "setu-test");
    return options_.Parse(static_cast<int>(arguments.size()), arguments.data(), environment,
                          logger_);
  }
  std::string Refused(std::vector<const char*> arguments,
                      const std::vector<std::string>& environment = {}) {
    const auto outcome = Parse(std::move(arguments), environment);
    EXPECT_EQ(outcome.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(outcome.status().message());
  }
  std::string WriteFile(const std::string& text) { return folder_.Write("setu.yaml", text); }

  std::string model_;
  std::vector<std::string> decode_, stop_;
  int32_t chunk_tokens_ = 512;
  bool tls_ = false;
  Duration grace_ = std::chrono::seconds(60);
  std::optional<int64_t> top_k_;
  int64_t memory_ = int64_t{4} << 30;
  NullLogger logger_;
  test::TempDir folder_;
  Options options_{"setu-test", "Tests options.", {"setu-test --model m.gguf"}};
};

TEST_F(OptionsTest, DefaultsStayWhereNothingIsSaid) {
  EXPECT_EQ(Parse({"--model", "m"}).value(), Outcome::kRun);
  EXPECT_EQ(model_, "m");
  EXPECT_EQ(chunk_tokens_, 512);
  EXPECT_FALSE(top_k_);
}

TEST_F(OptionsTest, EveryKindOfValueIsTaken) {
  EXPECT_TRUE(Parse({"--model=m", "--decode", "a:1,b:2", "--chunk-tokens=64", "--tls",
                     "--drain-grace", "5m", "--top-k", "0", "--kv-memory", "512MiB"})
                  .ok());
  EXPECT_THAT(decode_, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(chunk_tokens_, 64);
  EXPECT_TRUE(tls_);
  EXPECT_EQ(grace_, std::chrono::minutes(5));
  EXPECT_EQ(top_k_, 0);
  EXPECT_EQ(memory_, int64_t{512} << 20);
}

TEST_F(OptionsTest, FlagsWinOverTheEnvironmentAndThatOverTheFile) {
  const std::string path =
      WriteFile("model: from-file\nchunk-tokens: 16\ndecode: [a:1]\ndrain-grace: 1s\n");
  const std::vector<std::string> environment = {"SETU_CHUNK_TOKENS=32", "SETU_DECODE=b:2",
                                                "SETU_CONFIG=" + path};
  EXPECT_TRUE(Parse({"--chunk-tokens", "64"}, environment).ok());
  EXPECT_EQ(chunk_tokens_, 64);
  EXPECT_THAT(decode_, ElementsAre("b:2"));
  EXPECT_EQ(model_, "from-file");
  EXPECT_EQ(grace_, std::chrono::seconds(1));
}

TEST_F(OptionsTest, TheFlagForTheFileWinsToo) {
  const std::string path = WriteFile("model: right\n");
  EXPECT_TRUE(Parse({"--config", path.c_str()}, {"SETU_CONFIG=/nonexistent"}).ok());
  EXPECT_EQ(model_, "right");
}

TEST_F(OptionsTest, TheLastOfTwoFlagsWins) {
  EXPECT_TRUE(Parse({"--model", "a", "--model", "b"}).ok());
  EXPECT_EQ(model_, "b");
}

TEST_F(OptionsTest, OfARepeatedOneAllOfTheStrongestSourceCount) {
  EXPECT_TRUE(Parse({"--model=m", "--stop", "a, b", "--stop= ", "--stop", ""}).ok());
  EXPECT_THAT(stop_, ElementsAre("a, b", " ", ""));
  EXPECT_TRUE(Parse({"--model=m"}, {"SETU_STOP=c,d"}).ok());
  EXPECT_THAT(stop_, ElementsAre("c,d"));
  EXPECT_TRUE(Parse({"--model=m", "--stop=e"}, {"SETU_STOP=c,d"}).ok());
  EXPECT_THAT(stop_, ElementsAre("e"));
  const std::string path = WriteFile("model: m\nstop: [f, \"g, h\", \"\"]\n");
  EXPECT_TRUE(Parse({"--config", path.c_str()}).ok());
  EXPECT_THAT(stop_, ElementsAre("f", "g, h", ""));
}

TEST_F(OptionsTest, AnUnknownNameIsToldTheNearestWhereverItStands) {
  EXPECT_EQ(Refused({"--model=m", "--chunk-token", "4"}),
            "--chunk-token is no option of setu-test; the nearest is --chunk-tokens (--help "
            "lists all)");
  EXPECT_THAT(Refused({"--model=m", "-model", "x"}), HasSubstr("the nearest is --model ("));
  EXPECT_THAT(Refused({"--model=m"}, {"SETU_MODLE=x"}),
              HasSubstr("SETU_MODLE is no option of setu-test; the nearest is SETU_MODEL"));
  const std::string path = WriteFile("model: m\n\nkv_memory: 4GiB\n");
  EXPECT_THAT(Refused({"--config", path.c_str()}),
              HasSubstr("setu.yaml:3: kv_memory is no option of setu-test; the nearest is "
                        "kv-memory"));
  EXPECT_EQ(Refused({"--model=m", "--bogus"}),
            "--bogus is no option of setu-test (--help lists all)");
}

TEST_F(OptionsTest, AVariableOfAnotherProgramIsPassedOverAFlagIsNot) {
  EXPECT_TRUE(Parse({"--model=m"}, {"SETU_METRICS_LISTEN=nonsense", "SETU_PORT=1"}).ok());
  EXPECT_THAT(Refused({"--model=m", "--port=1"}), HasSubstr("--port is no option of setu-test"));
  const std::string path = WriteFile("model: m\nport: 1\n");
  EXPECT_THAT(Refused({"--config", path.c_str()}), HasSubstr(":2: port is no option of setu-test"));
}

TEST_F(OptionsTest, AVariableCountsOnlyInItsOneSpelling) {
  for (const char* variable : {"SETU_chunk_tokens=64", "SETU_Chunk_Tokens=64",
                               "SETU_CHUNK-TOKENS=64", "SETU_CHUNKTOKENS=64"}) {
    EXPECT_THAT(Refused({"--model=m"}, {variable}),
                HasSubstr("the nearest is SETU_CHUNK_TOKENS (--help lists all)"));
  }
  EXPECT_THAT(Refused({"--model=m"}, {"SETU_=1"}), HasSubstr("SETU_ is no option of setu-test"));
  EXPECT_EQ(chunk_tokens_, 512);
}

TEST_F(OptionsTest, EveryFlagHasItsVariable) {
  EXPECT_TRUE(Parse({}, {"SETU_MODEL=m", "SETU_DECODE=a:1", "SETU_CHUNK_TOKENS=64", "SETU_TLS=1",
                         "SETU_DRAIN_GRACE=5m", "SETU_TOP_K=3", "SETU_KV_MEMORY=1MiB"})
                  .ok());
  EXPECT_EQ(model_, "m");
  EXPECT_THAT(decode_, ElementsAre("a:1"));
  EXPECT_EQ(chunk_tokens_, 64);
  EXPECT_TRUE(tls_);
  EXPECT_EQ(grace_, std::chrono::minutes(5));
  EXPECT_EQ(top_k_, 3);
  EXPECT_EQ(memory_, int64_t{1} << 20);
}

TEST_F(OptionsTest, AddressesAreCheckedAtTheStart) {
  std::string listen = "127.0.0.1:50051", router = "127.0.0.1:50051";
  std::vector<std::string> workers;
  options_.AddListen("listen", &listen, "where");
  options_.AddAddress("address", &router, "whom");
  options_.AddAddresses("prefill", &workers, "workers");
  EXPECT_TRUE(Parse({"--model=m", "--listen=[::]:0", "--address=dns:///router:1",
                     "--prefill=a:1,dns:///b:2"})
                  .ok());
  EXPECT_THAT(workers, ElementsAre("a:1", "dns:///b:2"));
  EXPECT_THAT(Refused({"--model=m", "--listen", "dns:///a:1"}),
              HasSubstr("--listen is 'dns:///a:1'; it must be HOST:PORT"));
  EXPECT_THAT(Refused({"--model=m", "--address", "a:0"}),
              HasSubstr("--address is 'a:0'; it must be HOST:PORT"));
  EXPECT_THAT(Refused({"--model=m", "--prefill", "a:1,b"}),
              HasSubstr("--prefill is 'a:1,b'; it must be a list of addresses: 'b' must be "));
  EXPECT_THAT(Refused({"--model=m"}, {"SETU_PREFILL=a:1,b:2,a:1"}),
              HasSubstr("SETU_PREFILL is 'a:1,b:2,a:1'; it must be a list of different addresses"));
}

TEST_F(OptionsTest, AWrongValueNamesItsSource) {
  EXPECT_EQ(Refused({"--model=m", "--chunk-tokens", "4"}),
            "--chunk-tokens is '4'; it must be 16 to 8192");
  EXPECT_EQ(Refused({"--model=m"}, {"SETU_CHUNK_TOKENS=4"}),
            "SETU_CHUNK_TOKENS is '4'; it must be 16 to 8192");
  const std::string path = WriteFile("model: m\nchunk-tokens: 4\n");
  EXPECT_EQ(Refused({"--config", path.c_str(), "--chunk-tokens", "64"}),
            path + ":2: chunk-tokens is '4'; it must be 16 to 8192")
      << "also where a flag would win";
}

TEST_F(OptionsTest, AFileCannotNameAFile) {
  const std::string path = WriteFile("model: m\nconfig: other.yaml\n");
  EXPECT_THAT(Refused({"--config", path.c_str()}), HasSubstr(":2: config is no option of a file"));
}

TEST_F(OptionsTest, WhatIsRequiredIsNamedWithAllItsPlaces) {
  EXPECT_EQ(Refused({}), "--model is required (or SETU_MODEL, or model in the --config file)");
}

TEST_F(OptionsTest, ArgumentsThatAreNoFlagsAreTakenOnlyWhereDeclared) {
  EXPECT_THAT(Refused({"--model=m", "stray"}), HasSubstr("'stray' is no option"));
  std::vector<std::string> files;
  options_.AddPositional("file", &files, "what to read");
  EXPECT_TRUE(Parse({"a", "--model=m", "b"}).ok());
  EXPECT_THAT(files, ElementsAre("a", "b"));
}

TEST_F(OptionsTest, HelpWinsOverWhatIsMissing) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"--help"}).value(), Outcome::kHelpShown);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), options_.Help());
  EXPECT_THAT(options_.Help(), HasSubstr("--chunk-tokens N    tokens of one step; 16 to 8192 "
                                         "(default 512)"));
  EXPECT_THAT(options_.Help(), HasSubstr("--model TEXT        GGUF file (required)"));
}

}  // namespace
}  // namespace setu::config
