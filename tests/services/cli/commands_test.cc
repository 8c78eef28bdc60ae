// SPDX-License-Identifier: Apache-2.0
// The commands against a scripted router: what they ask, what they print, how they end.
#include "services/cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "common/rpc/bearer_token.h"
#include "tests/services/cli/fake_router.h"
#include "tests/support/temp_dir.h"

namespace setu::cli {
namespace {

using test::DeltaOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Commands : public ::testing::Test {
 protected:
  struct Ended {
    int code;
    std::string out, err;
  };
  Ended Run(int (*command)(const Arguments&), Arguments arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"--address", router_.address()});
    std::istringstream in(input);
    std::streambuf* const before = std::cin.rdbuf(in.rdbuf());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = command(arguments);
    std::cin.rdbuf(before);
    std::cin.clear();
    return {code, ::testing::internal::GetCapturedStdout(),
            ::testing::internal::GetCapturedStderr()};
  }

  test::FakeRouter router_;
};

TEST_F(Commands, GeneratePrintsLogprobsBehindTheText) {
  router_.deltas = {DeltaOf(0, "Hel", 4, -0.25f), DeltaOf(0, "lo", 6, -2)};
  const Ended ended = Run(RunGenerate, {"Hi", "--logprobs", "1"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "Hello\n"
            "   logprob  token (likeliest)\n"
            "    -0.250  \"<4>\" (\"<5>\" -0.500)\n"
            "    -2.000  \"<6>\" (\"<7>\" -0.500)\n");
  EXPECT_EQ(router_.requests().front().output().logprobs(), 1u);
}

TEST_F(Commands, GenerateShowsSeveralChoicesOneByOne) {
  router_.deltas = {DeltaOf(1, "b", 6, -2), DeltaOf(0, "a", 4, -1), DeltaOf(1, "c", 8, -3)};
  const Ended ended = Run(RunGenerate, {"Hi", "--n", "2", "--logprobs=0"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("[0]\na\n   logprob"));
  EXPECT_THAT(ended.out, HasSubstr("[1]\nbc\n   logprob"));
  EXPECT_TRUE(router_.requests().front().output().has_logprobs()) << "0 is not absent";
}

TEST_F(Commands, GenerateSendsEveryFlagAlsoAnEmptyOrZeroOne) {
  EXPECT_EQ(
      Run(RunGenerate, {"", "--stop", "", "--stop= a, b ", "--stop", "\n", "--min-tokens=0",
                        "--top-k=0", "--top-p=0", "--min-p=0", "--seed=0", "--temperature=0",
                        "--frequency-penalty=0", "--presence-penalty=0", "--repetition-penalty=1"})
          .code,
      0);
  const v1::GenerateRequest request = router_.requests().front();
  EXPECT_TRUE(request.has_text());
  EXPECT_THAT(request.stopping().strings(), ElementsAre("", " a, b ", "\n"));
  const v1::Sampling& sampling = request.sampling();
  EXPECT_TRUE(sampling.has_min_tokens());
  EXPECT_TRUE(sampling.has_top_k());
  EXPECT_TRUE(sampling.has_top_p());
  EXPECT_TRUE(sampling.has_min_p());
  EXPECT_TRUE(sampling.has_seed());
  EXPECT_TRUE(sampling.has_temperature());
  EXPECT_TRUE(sampling.has_frequency_penalty());
  EXPECT_TRUE(sampling.has_presence_penalty());
  EXPECT_TRUE(sampling.has_repetition_penalty());
}

TEST_F(Commands, WhatAFlagCannotMeanIsRefused) {
  for (const char* wrong : {"--seed=-1", "--deadline=0s", "--deadline=-1s", "--max-tokens=0",
                            "--address=", "--address=foo", "--address=unix:/x"}) {
    EXPECT_EQ(Run(RunGenerate, {"Hi", wrong}).code, 2) << wrong;
  }
  EXPECT_EQ(Run(RunChat, {"--logprobs=1"}).code, 2) << "a chat does not show them";
  EXPECT_EQ(Run(RunChat, {"--n=2"}).code, 2) << "a chat goes on from one answer";
  EXPECT_THAT(router_.requests(), IsEmpty());
}

TEST_F(Commands, TextThatIsNoUtf8IsRefusedBeforeItIsSent) {
  for (const Arguments& arguments :
       {Arguments{"caf\xE9"}, Arguments{"--chat", "caf\xE9"}, Arguments{"Hi", "--stop=caf\xE9"}}) {
    const Ended ended = Run(RunGenerate, arguments);
    EXPECT_EQ(ended.code, 1);
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, HasSubstr("is not valid UTF-8 at byte 3 (0xE9)"));
    EXPECT_THAT(ended.err, Not(HasSubstr("protobuf")));
  }
  EXPECT_EQ(Run(RunGenerate, {"-"}, "caf\xE9").code, 1);
  EXPECT_EQ(Run(RunChat, {"--system=caf\xE9"}, "Hi\n").code, 1);
  EXPECT_THAT(router_.requests(), IsEmpty());
  EXPECT_EQ(Run(RunChat, {}, "caf\xE9\nHi\n").code, 1);
  ASSERT_EQ(router_.requests().size(), 1u);
  EXPECT_EQ(router_.requests().front().chat().messages_size(), 1) << "without the refused line";
}

TEST_F(Commands, GenerateReadsStandardInputUpToTheLargestRequest) {
  EXPECT_EQ(Run(RunGenerate, {"-"}, "a\n").code, 0);
  EXPECT_EQ(router_.requests().front().text(), "a\n");
  const Ended ended = Run(RunGenerate, {"-"}, std::string((4 << 20) + 1, 'x'));
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("standard input has over 4194304 bytes"));
}

TEST_F(Commands, ChatSendsAnEmptySystemMessageToo) {
  EXPECT_EQ(Run(RunChat, {"--system="}, "Hi\n").code, 0);
  ASSERT_EQ(router_.requests().front().chat().messages_size(), 2);
  EXPECT_EQ(router_.requests().front().chat().messages(0).role(), "system");
}

TEST_F(Commands, AnAnswerThatBreaksOffShowsWhatCameAndFails) {
  router_.deltas = {DeltaOf(0, "Hel", 4, -1)};
  router_.end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed");
  for (const Arguments& arguments : {Arguments{"Hi"}, Arguments{"Hi", "--n=2"}}) {
    const Ended ended = Run(RunGenerate, arguments);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.out, HasSubstr("Hel\n"));
    EXPECT_THAT(ended.err, HasSubstr("the answer broke off: Socket closed; ask again"));
  }
  const Ended chat = Run(RunChat, {}, "Hi\n");
  EXPECT_EQ(chat.code, 1);
  EXPECT_THAT(chat.out, HasSubstr("Hel\n"));
  EXPECT_THAT(chat.err, HasSubstr("the answer broke off"));
}

TEST_F(Commands, ATokenComesFromItsFileAndIsNeverShown) {
  test::TempDir dir;
  const std::string file = "--token-file=" + dir.Write("t", "  setu-secret\n");
  for (const Ended& ended :
       {Run(RunGenerate, {"Hi", file}), Run(RunChat, {file}, "Hi\n"), Run(RunGenerate, {"Hi"})}) {
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(router_.tokens(), ElementsAre("setu-secret", "setu-secret", ""));
}

TEST_F(Commands, AFileWithoutATokenIsToldOf) {
  test::TempDir dir;
  for (const char* text : {"", " \n", "two words", "a\nb", "caf\xE9"}) {
    const Ended ended = Run(RunGenerate, {"Hi", "--token-file", dir.Write("t", text)});
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err, HasSubstr("has no token; it must be one word"));
  }
  EXPECT_THAT(Run(RunTop, {"--once", "--token-file", dir.File("none")}).err,
              HasSubstr("cannot read --token-file"));
  EXPECT_THAT(router_.requests(), IsEmpty());
}

TEST_F(Commands, ARouterThatKnowsNobodyTellsOfTheFlag) {
  router_.end = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no valid token");
  EXPECT_THAT(Run(RunGenerate, {"Hi"}).err,
              HasSubstr("UNAUTHENTICATED: the router at " + router_.address() +
                        " knows nobody without a token; name a file of one: --token-file FILE"));
}

TEST(TokenCommand, WritesTheTokenForItsOwnerAndPrintsItsDigest) {
  test::TempDir dir;
  const std::string path = dir.File("acme.token");
  const Arguments arguments = {"new", "--tenant", "acme", "--priority", "high", "--out", path};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunToken(arguments), 0);
  const std::string line = ::testing::internal::GetCapturedStdout();
  std::string token;
  std::ifstream(path) >> token;
  EXPECT_EQ(line, rpc::HexOf(rpc::DigestOf(token)) + ": [acme, high]\n");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunToken(arguments), 1) << "a token that is there stays";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("name a new file"));
  std::string kept;
  std::ifstream(path) >> kept;
  EXPECT_EQ(kept, token);
}

TEST_F(Commands, TheRoutersOwnWordIsNotTakenForAnAbsentRouter) {
  router_.end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
  EXPECT_EQ(Run(RunGenerate, {"Hi"}).err, "setu generate: UNAVAILABLE: draining\n");
  EXPECT_THAT(Run(RunGenerate, {"Hi", "--address=127.0.0.1:1"}).err,
              HasSubstr("no router answers at 127.0.0.1:1; is it running?"));
}

TEST_F(Commands, APassedDeadlineIsNamed) {
  router_.end = grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded");
  EXPECT_THAT(Run(RunGenerate, {"Hi", "--deadline=90s"}).err,
              HasSubstr("no end within --deadline 1m30s; allow more"));
}

std::vector<std::string> Contents(const v1::GenerateRequest& request) {
  std::vector<std::string> contents;
  for (const v1::ChatMessage& message : request.chat().messages()) {
    contents.push_back(message.content());
  }
  return contents;
}

TEST_F(Commands, ChatTakesLinesWithASlashForItself) {
  router_.deltas = {DeltaOf(0, "yes", 4, -1)};
  const Ended ended =
      Run(RunChat, {"--system=S"}, "one\n/reset\ntwo\n/nonsense\nthree\n/exit\nfour\n");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("/reset forgets the conversation"));
  EXPECT_THAT(ended.err, HasSubstr("/nonsense is no command"));
  ASSERT_EQ(router_.requests().size(), 3u);
  EXPECT_THAT(Contents(router_.requests()[1]), ElementsAre("S", "two"));
  EXPECT_THAT(Contents(router_.requests()[2]), ElementsAre("S", "two", "yes", "three"));
}

TEST_F(Commands, ChatSaysThatNoRouterAnswersBeforeTheFirstQuestion) {
  const Ended ended = Run(RunChat, {"--address=127.0.0.1:1"}, "");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("no router answers at 127.0.0.1:1"));
}

TEST_F(Commands, ChatForgetsItsOldestTurnsWhereAllOfThemDoNotFit) {
  router_.deltas = {DeltaOf(0, "yes", 4, -1)};
  router_.most_messages = 6;
  const Ended ended = Run(RunChat, {"--system=S"}, "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("the oldest 2 turn(s) are forgotten"));
  EXPECT_THAT(Contents(router_.requests().back()), ElementsAre("S", "three", "yes", "four"));
}

TEST_F(Commands, ChatKeepsItsTurnsWhereAQuestionFitsAfterNone) {
  router_.deltas = {DeltaOf(0, "yes", 4, -1)};
  router_.most_messages = 1;
  const Ended ended = Run(RunChat, {"--system=S"}, "one\n");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("--max-tokens is 9; at most 3 fit"));
  EXPECT_THAT(ended.err, Not(HasSubstr("forgotten")));
}

TEST_F(Commands, ChatSaysThatAFullContextCutsAnAnswer) {
  router_.deltas = {DeltaOf(0, "yes", 4, -1)};
  router_.finish_reason = v1::FINISH_REASON_LENGTH;
  EXPECT_THAT(Run(RunChat, {}, "one\n").err, HasSubstr("context is full"));
  EXPECT_THAT(Run(RunChat, {"--max-tokens=1"}, "one\n").err, Not(HasSubstr("context is full")));
}

TEST_F(Commands, FiguresAreOfAllChoicesAndOnStderr) {
  router_.deltas = {DeltaOf(0, "a", 4, -1), DeltaOf(1, "b", 4, -1)};
  const Ended ended = Run(RunGenerate, {"Hi", "--n=3", "--figures"});
  EXPECT_THAT(ended.err, HasSubstr("3 generated tokens"));
  EXPECT_THAT(ended.out, Not(HasSubstr("generated tokens")));
}

TEST_F(Commands, AnErrorNamesTheFlagAndNotTheField) {
  router_.end = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                             "sampling.min_tokens is 9; stopping.strings[0] is empty");
  EXPECT_EQ(Run(RunGenerate, {"Hi"}).err,
            "setu generate: INVALID_ARGUMENT: --min-tokens is 9; --stop[0] is empty\n");
}

TEST(CommandHelp, IsThereForEveryCommandWithExamples) {
  using Command = int (*)(const Arguments&);
  for (const Command command : {RunUp, RunGenerate, RunChat, RunBench, RunBenchCompare,
                                RunBenchEngine, RunModel, RunModelSynth}) {
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(command({"--help"}), 0);
    EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("Examples:\n  "));
  }
}

}  // namespace
}  // namespace setu::cli
