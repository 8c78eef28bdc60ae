// SPDX-License-Identifier: Apache-2.0
// kill -9 of a worker at each place of a request's way: before each message between router, prefill
// and decode worker, and after each token. The client sees a pause, not a token less or more, and
// no survivor holds anything afterwards.
#include <gtest/gtest.h>

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/client.h"
#include "tests/support/cluster.h"
#include "tests/support/fault_plan.h"
#include "tests/support/held_memory.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

constexpr uint32_t kTokens = 40;

class Places : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(cluster_.WaitReady()); }

  FaultPlan::Fault Kill(const std::string& role, FaultPlan::Place at) {
    return {.at = std::move(at), .role = role, .act = [this](const std::string& worker) {
              cluster_.Kill(worker);
            }};
  }
  // Whether the place was reached. The worker is back afterwards.
  bool CostsNoToken(FaultPlan::Fault fault) {
    plan_.Arm(std::move(fault));
    Answer answer = Generate(cluster_.stub(), request_);
    const std::string killed = plan_.Disarm();
    EXPECT_TRUE(answer.ok()) << "killed " << killed << ": " << answer.Explain();
    EXPECT_EQ(answer.ids(), expected_) << "killed " << killed;
    EXPECT_EQ(cluster_.Quiesce(), "") << "killed " << killed;
    if (killed.empty()) return false;
    EXPECT_TRUE(cluster_.StartAgain(killed)) << killed;
    EXPECT_TRUE(WaitUntil(std::chrono::seconds(5), [&] { return Memories() == 0; }))
        << "a decode worker holds memory of a sender, killed " << killed;
    return true;
  }
  size_t Memories() const {
    return HeldMemories(cluster_.pid("decode-0")) + HeldMemories(cluster_.pid("decode-1"));
  }
  // At each message of that kind that the request has; at how many.
  int AtEach(const std::string& role, FaultPlan::Place (*place)(const std::string&, int),
             const std::string& method) {
    for (int index = 0;; ++index) {
      SCOPED_TRACE(absl::StrCat(role, " at ", method, " ", index));
      if (!CostsNoToken(Kill(role, place(method, index)))) return index;
    }
  }
  static v1::GenerateRequest Request() {
    v1::GenerateRequest request = GreedyText(std::string(90, 'a'), kTokens);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }

  TempDir dir_;
  const std::string model_ = WriteTinyModel(dir_);
  v1::GenerateRequest request_ = Request();
  std::vector<uint32_t> expected_ = ReferenceIds({.model = model_}, request_);
  FaultPlan plan_;
  ProcessCluster cluster_{{.model = model_,
                           .prefill_workers = 2,
                           .decode_workers = 2,
                           .prefill_flags = {"--chunk-tokens", "16"},
                           .watch = plan_.watch()}};
};

TEST_F(Places, APrefillWorkerMayDieBeforeEachMessageOfItsPush) {
  // Manifest, a frame of each layer at least, commit.
  EXPECT_GE(AtEach("prefill", FaultPlan::MessageOf, "PushKv"), 4);
  EXPECT_TRUE(CostsNoToken(Kill("prefill", FaultPlan::Commit())));
}

TEST_F(Places, APrefillWorkerMayDieWhenCalledOrAtItsFirstToken) {
  EXPECT_TRUE(CostsNoToken(Kill("prefill", FaultPlan::MessageOf("Prefill", 0))));
  EXPECT_TRUE(CostsNoToken(Kill("prefill", FaultPlan::AnswerOf("Prefill", 0))));
}

TEST_F(Places, APrefillWorkerMayDieBetweenCommitAndItsAnswer) {
  FaultPlan::Fault fault = Kill("prefill", FaultPlan::Committed());
  fault.arrives = true;
  fault.rest = GrpcProxy::Verdict::kPass;
  fault.lost = {FaultPlan::Pushed()};
  EXPECT_TRUE(CostsNoToken(fault));
  // Nor has the router heard of the first token from it.
  fault.lost.push_back(FaultPlan::AnswerOf("Prefill", 0));
  EXPECT_TRUE(CostsNoToken(fault));
}

TEST_F(Places, ADecodeWorkerMayDieAfterEachToken) {
  for (uint32_t index = 0; index < kTokens; ++index) {
    SCOPED_TRACE(absl::StrCat("token ", index));
    FaultPlan::Fault fault = Kill("decode", FaultPlan::Token(static_cast<int32_t>(index)));
    fault.arrives = true;
    EXPECT_TRUE(CostsNoToken(fault));
  }
}

TEST_F(Places, ADecodeWorkerMayDieBeforeEachMessageOfATransfer) {
  EXPECT_GE(AtEach("decode", FaultPlan::MessageOf, "PushKv"), 4);
}

TEST_F(Places, ADecodeWorkerMayDieBeforeItGrantsOrCommits) {
  EXPECT_TRUE(CostsNoToken(Kill("decode", FaultPlan::MessageOf("Decode", 0))));
  EXPECT_TRUE(CostsNoToken(Kill("decode", FaultPlan::AnswerOf("Decode", 0))));
  EXPECT_TRUE(CostsNoToken(Kill("decode", FaultPlan::Committed())));
}

// What a resumed choice rebuilds from its tokens: draws, penalties, text held back for a stop
// string, logprobs, and each choice by itself.
class Resumed : public Places {
 protected:
  static v1::GenerateRequest Sampled() {
    v1::GenerateRequest request = Request();
    v1::Sampling& sampling = *request.mutable_sampling();
    sampling.set_temperature(0.9f);
    sampling.set_top_k(50);
    sampling.set_seed(11);
    return request;
  }
  static v1::GenerateRequest Penalised() {
    v1::GenerateRequest request = Sampled();
    v1::Sampling& sampling = *request.mutable_sampling();
    sampling.set_repetition_penalty(1.3f);
    sampling.set_frequency_penalty(0.7f);
    sampling.set_presence_penalty(0.4f);
    return request;
  }
  // All that the client is told of a choice, but for its times.
  static std::string Told(const Choice& choice) {
    std::string told = absl::StrCat(absl::StrJoin(choice.ids, " "), "; ", choice.text, "; ");
    for (const v1::TokenLogprobs& logprobs : choice.logprobs) {
      absl::StrAppend(&told, logprobs.ShortDebugString(), " ");
    }
    for (const v1::Finished& finished : choice.finished) {
      absl::StrAppend(&told, "; ended by ", finished.finish_reason(), " '", finished.stop_match(),
                      "'");
    }
    return told;
  }
  // Of a request whose decode worker dies after some of its tokens, first to last.
  void ExpectSame(const v1::GenerateRequest& request, std::initializer_list<int32_t> tokens) {
    const Answer alone = Generate(alone_.stub(), request);
    ASSERT_TRUE(alone.ok()) << alone.Explain();
    for (const int32_t token : tokens) {
      SCOPED_TRACE(absl::StrCat("token ", token));
      FaultPlan::Fault fault = Kill("decode", FaultPlan::Token(token));
      fault.arrives = true;
      plan_.Arm(std::move(fault));
      const Answer answer = Generate(cluster_.stub(), request);
      const std::string killed = plan_.Disarm();
      ASSERT_FALSE(killed.empty()) << answer.Explain();
      EXPECT_TRUE(answer.ok()) << answer.Explain();
      ASSERT_EQ(answer.choices.size(), alone.choices.size());
      for (const auto& [index, choice] : alone.choices) {
        EXPECT_EQ(Told(answer.choices.at(index)), Told(choice)) << "of choice " << index;
      }
      EXPECT_EQ(cluster_.Quiesce(), "") << "killed " << killed;
      ASSERT_TRUE(cluster_.StartAgain(killed)) << killed;
    }
  }
  // Where the text has two characters for the first time, from its middle on.
  static std::string TwoOfTheSecondHalf(const std::string& text) {
    const auto begins = [&](size_t at) {
      return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    };
    for (size_t at = text.size() / 2; at < text.size(); ++at) {
      if (!begins(at)) continue;
      size_t end = at;
      for (int i = 0; i < 2 && end < text.size(); ++i) {
        while (!begins(++end)) continue;
      }
      if (text.find(text.substr(at, end - at)) == at) return text.substr(at, end - at);
    }
    return "";
  }
  void SetUp() override {
    Places::SetUp();
    ASSERT_TRUE(alone_.WaitReady());
  }

  Cluster alone_{{.model = model_}};
};

TEST_F(Resumed, ASampledAnswerIsTheSame) { ExpectSame(Sampled(), {0, 11, 38}); }

TEST_F(Resumed, ThePenaltiesOfItsTokensStay) { ExpectSame(Penalised(), {0, 11, 38}); }

TEST_F(Resumed, TheLogprobsAreTheSame) {
  v1::GenerateRequest request = Sampled();
  request.mutable_output()->set_logprobs(3);
  ExpectSame(request, {0, 11, 38});
}

TEST_F(Resumed, AStopStringIsFoundWhereverTheWorkerDied) {
  v1::GenerateRequest request = Sampled();
  const Answer whole = Generate(alone_.stub(), request);
  ASSERT_TRUE(whole.ok()) << whole.Explain();
  const std::string stop = TwoOfTheSecondHalf(whole.choices.at(0).text);
  ASSERT_FALSE(stop.empty()) << whole.choices.at(0).text;
  request.mutable_stopping()->add_strings(stop);
  const Answer stopped = Generate(alone_.stub(), request);
  ASSERT_EQ(stopped.choices.at(0).finished.at(0).stop_match(), stop) << stopped.Explain();
  // About its end: what is held back for the string is in no delta yet.
  const auto last = static_cast<int32_t>(stopped.choices.at(0).ids.size()) - 1;
  ExpectSame(request, {0, last - 2, last - 1});
}

TEST_F(Resumed, EachOfThreeChoicesIsTheSame) {
  v1::GenerateRequest request = Penalised();
  request.mutable_sampling()->set_n(3);
  ExpectSame(request, {0, 11, 38});
}

// A model and a prompt that take a hundred chunks of milliseconds: the first frame leaves with
// nearly all of them to come.
TEST(MidPrompt, APrefillWorkerMayDieBetweenTwoChunks) {
  TempDir dir;
  const std::string model =
      WriteTinyModel(dir, {.layers = 4, .hidden = 256, .ffn_hidden = 512, .context = 2048});
  const v1::GenerateRequest request =
      GreedyRequest(std::vector<uint32_t>(1600, kTinyFirstByte + 'm'), 20);
  const std::vector<uint32_t> expected = ReferenceIds({.model = model}, request);
  FaultPlan plan;
  ProcessCluster cluster({.model = model,
                          .prefill_workers = 2,
                          .prefill_flags = {"--chunk-tokens", "16"},
                          .watch = plan.watch()});
  ASSERT_TRUE(cluster.WaitReady());
  bool sampled = false;
  FaultPlan::Place first_frame = FaultPlan::MessageOf("PushKv", 1);
  plan.Arm({.at =
                [&](const GrpcProxy::Message& message) {
                  sampled = sampled || FaultPlan::AnswerOf("Prefill", 0)(message);
                  return first_frame(message);
                },
            .role = "prefill",
            .act = [&](const std::string& worker) { cluster.Kill(worker); },
            .arrives = true});
  Answer answer = Generate(cluster.stub(), request);
  const std::string killed = plan.Disarm();
  EXPECT_FALSE(killed.empty());
  EXPECT_FALSE(sampled) << "the prompt was through";
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  EXPECT_EQ(answer.ids(), expected);
  EXPECT_EQ(cluster.Metric("router", "setu_prefill_retries_total"), 1);
  EXPECT_EQ(cluster.Quiesce(), "");
}

}  // namespace
}  // namespace setu::test
