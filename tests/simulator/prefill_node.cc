// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/prefill_node.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging/logger.h"
#include "common/worker/description.h"
#include "services/prefill/prefill_service.h"
#include "tests/common/roofline/model_fixture.h"
#include "tests/simulator/decode_node.h"
#include "tests/simulator/hash_model.h"
#include "tests/simulator/sending.h"

namespace setu::simulator {
namespace {

using worker::v1::PrefillResponse;

constexpr Duration kStep = std::chrono::milliseconds(1);
constexpr Duration kRow = std::chrono::microseconds(200);
constexpr int32_t kMaxRows = 64;

// As PrefillService::Stream in services/prefill/prefill_service.cc.
class Call final : public prefill::Reply {
 public:
  explicit Call(Answers<PrefillResponse> answers) : answers_(std::move(answers)) {}

  void FirstTokens(const std::vector<wire::FirstToken>& tokens, Duration, Duration,
                   int32_t known_tokens) override {
    PrefillResponse response;
    worker::v1::FirstTokens& first = *response.mutable_first_tokens();
    for (const wire::FirstToken& token : tokens) *first.add_tokens() = wire::ToProto(token);
    first.set_cached_tokens(static_cast<uint32_t>(known_tokens));
    answers_.Send("first-tokens", std::move(response));
  }
  void Pushed(uint64_t kv_bytes, Duration) override {
    PrefillResponse response;
    response.mutable_pushed()->set_kv_bytes(kv_bytes);
    answers_.Send("pushed", std::move(response));
  }
  void PushFailed() override {
    PrefillResponse response;
    response.mutable_push_failed();
    answers_.Send("push-failed", std::move(response));
  }
  void End(const absl::Status& status) override { answers_.End(status); }

 private:
  const Answers<PrefillResponse> answers_;
};

}  // namespace

struct PrefillNode::Process {
  explicit Process(PrefillNode& owner)
      : node(owner),
        runner(
            owner.setup_.blocks, kMaxRows,
            [&owner](int32_t rows) { owner.Spend(owner.setup_.slowness * (kStep + rows * kRow)); }),
        reports(owner, worker::Describe(worker::v1::ROLE_PREFILL, runner,
                                        absl::StrCat(owner.address(), "/", owner.life()))),
        loop(
            owner.setup_.options, runner, roofline::TinyStepModel(),
            [this](const std::string& address, kv_transfer::PushPlan plan,
                   kv_transfer::PushDone done) {
              return StartPush(address, std::move(plan), std::move(done));
            },
            /*probe=*/nullptr, owner, logger,
            [this](const prefill::Snapshot& now, auto changes) {
              snapshot = now;
              reports.Publish(prefill::Report(now, runner.options().max_logits), changes);
            }) {}

  std::shared_ptr<kv_transfer::Push> StartPush(const std::string& address,
                                               kv_transfer::PushPlan plan,
                                               kv_transfer::PushDone done) {
    DecodeNode& decode = *node.nodes_.decode.at(address);
    return Sending::Start(node.network_.Open(node, decode, "push"), decode, runner.storage(),
                          std::move(plan),
                          [this, done = std::move(done)](const kv_transfer::PushResult& result) {
                            done(result);
                            node.Wake();
                          });
  }

  PrefillNode& node;
  HashRunner runner;
  NullLogger logger;
  LoadReports reports;
  prefill::Snapshot snapshot;
  prefill::Loop loop;
};

PrefillNode::PrefillNode(Timeline& timeline, Network& network, const Nodes& nodes,
                         std::string address, const PrefillSetup& setup)
    : Node(timeline, std::move(address)), network_(network), nodes_(nodes), setup_(setup) {}

PrefillNode::~PrefillNode() = default;

void PrefillNode::Accept(const worker::v1::PrefillRequest& request,
                         const Answers<PrefillResponse>& answers) {
  Process& process = *process_;
  absl::StatusOr<prefill::Prompt> prompt =
      prefill::ReadPrompt(request, {.vocabulary = kVocabulary,
                                    .tokens = process.runner.max_sequence_tokens(),
                                    .block_tokens = kBlockTokens});
  if (!prompt.ok()) return answers.End(prompt.status());
  prompt->reply = std::make_shared<Call>(answers);
  absl::StatusOr<prefill::PromptId> id = process.loop.Admit(*std::move(prompt));
  if (!id.ok()) return answers.End(id.status());
  answers.pipe().OnEndAtCallee([this, id = *id](const absl::Status&) {
    process_->loop.Cancel(id);
    Wake();
  });
  Wake();
}

LoadReports& PrefillNode::reports() { return process_->reports; }

void PrefillNode::Drain() {
  if (process_ == nullptr) return;
  process_->loop.BeginDrain();
  Wake();
}

const prefill::Snapshot* PrefillNode::snapshot() const {
  return process_ == nullptr ? nullptr : &process_->snapshot;
}

void PrefillNode::StartProcess() { process_ = std::make_unique<Process>(*this); }

void PrefillNode::EndProcess() { process_ = nullptr; }

bool PrefillNode::Turn() { return process_->loop.Turn(); }

std::optional<TimePoint> PrefillNode::next_timer() const { return process_->loop.next_timer(); }

}  // namespace setu::simulator
