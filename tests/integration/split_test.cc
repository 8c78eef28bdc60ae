// SPDX-License-Identifier: Apache-2.0
// A prompt prefilled in one worker and decoded in another, over their real protocol with the test
// as the router: the tokens are those of one model that does all alone.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/rpc/server.h"
#include "common/wire/convert.h"
#include "services/decode/worker.h"
#include "services/prefill/worker.h"
#include "setu/worker/v1/decode.grpc.pb.h"
#include "tests/support/generate.h"
#include "tests/support/numeric_paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu {
namespace {

constexpr int32_t kAnswer = 40;

class SplitTest : public ::testing::TestWithParam<test::PathAndKv> {
 protected:
  std::unique_ptr<engine::ModelRunner> Load() {
    auto runner = engine::ModelRunner::Load(
        {.model_path = model_, .cpu = GetParam().On({.threads = 1}), .max_rows = 64}, nullptr);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  void SetUp() override {
    decode_.emplace(decode::WorkerOptions{}, Load(), clock_, logger_);
    decode_server_ = Listen(decode_->services());
    prefill_.emplace(prefill::WorkerOptions{.loop = {.chunk_tokens = 64}}, Load(),
                     /*staging=*/nullptr, *channels_, clock_, logger_);
    prefill_server_ = Listen(prefill_->services());
  }
  void TearDown() override {
    prefill_->Stop();
    decode_->Stop();
    prefill_server_.reset();
    decode_server_.reset();
    prefill_.reset();
    decode_.reset();
  }

  std::unique_ptr<rpc::Server> Listen(std::vector<grpc::Service*> services) {
    auto listener = rpc::Listener::Bind("--listen", "127.0.0.1:0");
    EXPECT_TRUE(listener.ok()) << listener.status();
    auto server = rpc::Server::Start({.max_receive_bytes = 64 << 20}, std::move(services),
                                     *std::move(listener), logger_);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  static std::string Address(const rpc::Server& server) {
    return "127.0.0.1:" + std::to_string(server.port());
  }

  // What the router does, for one choice: room, prefill, then tokens to the end.
  std::vector<int32_t> Ask(const std::string& uuid, std::vector<int32_t> prompt) {
    wire::Sequence sequence;
    sequence.uuid = uuid;
    sequence.prompt_length = static_cast<int32_t>(prompt.size());
    sequence.ids = prompt;
    sequence.sampling.temperature = 0.0f;
    sequence.sampling.max_tokens = kAnswer;
    sequence.choices = {0};

    grpc::ClientContext decode_context, prefill_context;
    auto decode = worker::v1::DecodeService::NewStub(channels_->Connect(Address(*decode_server_)));
    auto stream = decode->Decode(&decode_context);
    worker::v1::DecodeRequest open;
    *open.mutable_open()->mutable_sequence() = wire::ToProto(sequence);
    open.mutable_open()->set_attempt(1);
    EXPECT_TRUE(stream->Write(open));
    worker::v1::DecodeResponse event;
    EXPECT_TRUE(stream->Read(&event) && event.has_ready()) << event.ShortDebugString();

    worker::v1::PrefillRequest request;
    *request.mutable_sequence() = wire::ToProto(sequence);
    request.set_attempt(1);
    request.set_decode_address(Address(*decode_server_));
    request.set_blocks_held(event.ready().blocks_held());
    auto prefill =
        worker::v1::PrefillService::NewStub(channels_->Connect(Address(*prefill_server_)));
    auto answers = prefill->Prefill(&prefill_context, request);
    worker::v1::PrefillResponse answer;
    EXPECT_TRUE(answers->Read(&answer) && answer.has_first_tokens());
    const uint32_t first = answer.first_tokens().tokens(0).token().id();
    EXPECT_TRUE(answers->Read(&answer) && answer.has_pushed());
    const grpc::Status pushed = answers->Finish();
    EXPECT_TRUE(pushed.ok()) << pushed.error_message();

    while (stream->Read(&event) && !event.has_ended()) {
      EXPECT_EQ(event.tokens().first_index() + sequence.prompt_length, prompt.size());
      for (const auto& token : event.tokens().tokens()) prompt.push_back(token.id());
    }
    // The first token came both ways.
    EXPECT_EQ(prompt[sequence.prompt_length], static_cast<int32_t>(first));
    EXPECT_EQ(event.ended().reason(), worker::v1::END_REASON_MAX_TOKENS);
    stream->WritesDone();
    const grpc::Status decoded = stream->Finish();
    EXPECT_TRUE(decoded.ok()) << decoded.error_message();
    return prompt;
  }

  test::TempDir dir_;
  const std::string model_ = test::WriteTinyModel(dir_, {.weights = kernels::WeightType::kQ8_0});
  SteadyClock clock_;
  NullLogger logger_;
  const std::unique_ptr<rpc::ChannelFactory> channels_ = rpc::MakeTcpChannelFactory();
  std::optional<decode::Worker> decode_;
  std::optional<prefill::Worker> prefill_;
  std::unique_ptr<rpc::Server> decode_server_, prefill_server_;
};

TEST_P(SplitTest, TheTokensAreThoseOfOneModelAlone) {
  std::mt19937 random(11);
  std::vector<std::vector<int32_t>> prompts;
  for (int32_t length : {1, 15, 16, 17, 100, 300}) {
    std::vector<int32_t>& prompt = prompts.emplace_back();
    for (int32_t i = 0; i < length; ++i) {
      prompt.push_back(test::kTinyFirstByte + static_cast<int32_t>(random() % 256));
    }
  }
  auto alone = Load();
  const std::vector<test::Generated> expected = test::Generate(*alone, prompts, kAnswer, {});
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(Ask("prompt-" + std::to_string(i), prompts[i]), expected[i].ids);
  }
  prefill_->BeginDrain();
  EXPECT_TRUE(prefill_->WaitDrained(std::chrono::seconds(20)));
  const prefill::Snapshot last = prefill_->snapshot();
  EXPECT_EQ(last.finished, prompts.size());
  EXPECT_EQ(last.blocks_free, last.blocks_total);
}

INSTANTIATE_TEST_SUITE_P(Paths, SplitTest, ::testing::ValuesIn(test::kPathsAndKv),
                         test::PathAndKvOf);

}  // namespace
}  // namespace setu
