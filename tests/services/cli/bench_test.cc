// SPDX-License-Identifier: Apache-2.0
// `setu bench` against a scripted router: what a command line asks for, and what is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "services/cli/commands.h"
#include "tests/services/cli/fake_router.h"
#include "tests/support/temp_dir.h"

namespace setu::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::string Contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Bench : public ::testing::Test {
 protected:
  void SetUp() override { router_.deltas = {test::DeltaOf(0, "a", 4, -1)}; }

  struct Ended {
    int code;
    std::string out, err;
  };
  Ended Run(Arguments arguments) {
    if (arguments.empty() || arguments[0] != "compare") {
      arguments.insert(arguments.begin(), {"--address", router_.address()});
    }
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunBench(arguments);
    return {code, ::testing::internal::GetCapturedStdout(),
            ::testing::internal::GetCapturedStderr()};
  }

  test::TempDir dir_;
  test::FakeRouter router_;
};

// Asked by two tenants at once; the ids of the prompts are asked for as the first.
TEST_F(Bench, EachWorkloadSendsTheTokenOfItsClients) {
  const auto workload = [&](const std::string& name) {
    const std::string token = dir_.Write(name + ".token", name + "-secret\n");
    return dir_.Write(name + ".yaml", "requests: 2\ntoken-file: " + token + "\n");
  };
  const Ended ended = Run({workload("acme"), workload("zeta"), "--max-tokens=1"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("secret")));
  EXPECT_THAT(router_.tokens(),
              UnorderedElementsAre("acme-secret", "acme-secret", "zeta-secret", "zeta-secret"));
}

TEST_F(Bench, ReadsAWorkloadAndLetsTheCommandLineOverride) {
  const std::string file = dir_.Write("w.yaml", "requests: 3\nprompt-tokens: 9\nmax-tokens: 5\n");
  const Ended ended = Run({file, "--max-tokens=6"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr(" s, 3 OK\n"));
  ASSERT_EQ(router_.requests().size(), 3u);
  EXPECT_EQ(router_.requests()[0].token_ids().ids_size(), 9);
  EXPECT_EQ(router_.requests()[0].sampling().max_tokens(), 6u);
}

TEST_F(Bench, RefusesWhatCannotBeMeantBeforeItAsks) {
  const std::string run_wide = dir_.Write("run.yaml", "seed: 3\n");
  const std::string unknown = dir_.Write("unknown.yaml", "prompt-token: 3\n");
  const std::string wrong = dir_.Write("wrong.yaml", "prompt-tokens: many\n");
  const std::string good = dir_.Write("good.yaml", "requests: 1\n");
  for (const auto& [arguments, said] : std::vector<std::pair<Arguments, std::string>>{
           {{run_wide}, "run.yaml sets an option of the whole run"},
           {{unknown}, "the nearest is prompt-tokens"},
           {{wrong}, "wrong.yaml: --prompt-tokens is 'many'"},
           {{"no.yaml"}, "no.yaml"},
           {{good, "--config", good}, "not both"},
           {{"--burst=3"}, "--burst is of bursts"},
           {{good, "--beside", good, "--versus", good}, "give one of them"}}) {
    const Ended ended = Run(arguments);
    EXPECT_EQ(ended.code, 2) << arguments[0];
    EXPECT_THAT(ended.err, HasSubstr(said));
  }
  EXPECT_THAT(router_.requests(), IsEmpty());
}

TEST_F(Bench, ComparesInTurnWithWhatIsBeside) {
  const std::string streams = dir_.Write("streams.yaml", "requests: 2\n");
  const std::string others = dir_.Write("others.yaml", "requests: 3\nprompt-tokens: 7\n");
  const std::string json = dir_.File("r.json"), html = dir_.File("r.html");
  const Ended ended =
      Run({streams, "--beside", others, "--rounds=2", "--json", json, "--html", html});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(router_.requests().size(), 2 * (2 + 5u));
  EXPECT_THAT(ended.out, AllOf(HasSubstr("== alone\n"), HasSubstr("others: "),
                               ContainsRegex("streams +alone +beside +ratio"),
                               HasSubstr("within noise: the ranges of the rounds meet")));
  EXPECT_THAT(Contents(html), HasSubstr("</html>"));

  const Ended compared = Run({"compare", json, json});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, ContainsRegex("ttft p50 ms .* 1.000  within noise\n"));
}

TEST_F(Bench, CompareSaysWhatItCannotRead) {
  const std::string other = dir_.Write("other.json", "{}");
  EXPECT_EQ(Run({"compare", other}).code, 2);
  EXPECT_THAT(Run({"compare", other, other}).err, HasSubstr("other.json is no report"));
  EXPECT_THAT(Run({"compare", "/no/such", other}).err, HasSubstr("cannot read '/no/such'"));
}

TEST_F(Bench, MeasuresTheCapacityThatAnOverloadIsAMultipleOf) {
  const Ended ended = Run({"--times-capacity=2", "--concurrency=2", "--requests=20"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(router_.requests().size(), 40u);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("== knee\n"), HasSubstr("== 2x\n")));
}

TEST_F(Bench, WithoutAnAnswerThereIsNoCapacity) {
  router_.end = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full");
  const Ended ended = Run({"--times-capacity=2", "--requests=2"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("no capacity"), HasSubstr("the queue is full")));
}

TEST_F(Bench, TheSameSeedAsksTheSame) {
  for (const char* seed : {"--seed=4", "--seed=4", "--seed=5"}) {
    EXPECT_EQ(Run({"--requests=4", "--concurrency=1", "--prompt-tokens=5..9", seed}).code, 0);
  }
  const std::vector<v1::GenerateRequest> asked = router_.requests();
  ASSERT_EQ(asked.size(), 12u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(asked[i].SerializeAsString(), asked[i + 4].SerializeAsString());
    EXPECT_NE(asked[i].SerializeAsString(), asked[i + 8].SerializeAsString());
  }
}

TEST_F(Bench, ARouterThatIsNotThereIsNamed) {
  const Ended ended = Run({"--address=127.0.0.1:1", "--requests=1"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("no router answers at 127.0.0.1:1"));
  EXPECT_THAT(ended.out, IsEmpty());
}

TEST_F(Bench, OpensItsFilesBeforeItRuns) {
  for (const char* flag : {"--json", "--html"}) {
    const Ended refused = Run({"--requests=1", flag, "/no/such/folder/x"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err,
                HasSubstr(std::string("cannot write ") + flag + " '/no/such/folder/x'"));
    EXPECT_EQ(Run({"--requests=1", std::string(flag) + "="}).code, 1);
  }
  EXPECT_THAT(router_.requests(), IsEmpty());
  EXPECT_EQ(Run({"--requests=1", "--json=/dev/full"}).code, 1);

  const std::string path = dir_.Write("report.json", std::string(100'000, 'x'));
  EXPECT_EQ(Run({"--requests=1", "--json", path}).code, 0);
  EXPECT_THAT(Contents(path), AllOf(HasSubstr("\"generated_tokens\": 1"), Not(HasSubstr("xxx"))));
}

}  // namespace
}  // namespace setu::cli
