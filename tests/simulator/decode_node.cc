// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/decode_node.h"

#include <deque>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/inbox.h"
#include "common/kv_transfer/receiver.h"
#include "common/logging/logger.h"
#include "common/worker/description.h"
#include "services/decode/event.h"
#include "services/decode/loop.h"
#include "tests/common/roofline/model_fixture.h"
#include "tests/simulator/hash_model.h"

namespace setu::simulator {
namespace {

using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;

constexpr Duration kStep = std::chrono::milliseconds(2);
constexpr Duration kRow = std::chrono::microseconds(100);

worker::v1::DescribeResponse Describe(engine::Runner& runner, const decode::WorkerOptions& options,
                                      const std::string& incarnation) {
  worker::v1::DescribeResponse description =
      worker::Describe(worker::v1::ROLE_DECODE, runner, incarnation);
  description.set_grant_output_tokens(options.grant_output_tokens);
  description.set_resume_watermark(options.resume_watermark);
  return description;
}

}  // namespace

struct DecodeNode::Process {
  explicit Process(DecodeNode& owner)
      : node(owner),
        runner(
            owner.setup_.blocks, /*max_rows=*/64,
            [&owner](int32_t rows) { owner.Spend(owner.setup_.slowness * (kStep + rows * kRow)); }),
        inbox(owner.setup_.options.inbox_events),
        receiver(wire::ToProto(runner.fingerprint()), kVocabulary, runner.storage(), owner,
                 [this](kv_transfer::TransferEvent event) {
                   std::visit([this](auto& e) { inbox.PushUnbounded(std::move(e)); }, event);
                   node.Wake();
                 }),
        reports(owner, Describe(runner, owner.setup_.options,
                                absl::StrCat(owner.address(), "/", owner.life()))),
        loop(owner.setup_.options, runner, roofline::TinyStepModel(), receiver, inbox,
             /*probe=*/nullptr, owner, logger, [this](const decode::Snapshot& now, auto changes) {
               snapshot = now;
               reports.Publish(decode::Report(now), changes);
             }) {}

  void Tell(decode::Event event) {
    inbox.PushUnbounded(std::move(event));
    node.Wake();
  }

  DecodeNode& node;
  HashRunner runner;
  Inbox<decode::Event> inbox;
  kv_transfer::Receiver receiver;
  LoadReports reports;
  NullLogger logger;
  decode::Snapshot snapshot;
  decode::RequestId next_id = 0;
  decode::Loop loop;
};

namespace {

// As Call in services/decode/decode_service.cc.
class Stream final : public decode::ReplyStream, public DecodeSession {
 public:
  using Tell = std::function<void(decode::Event)>;
  Stream(Answers<DecodeResponse> answers, decode::RequestId id, Tell tell)
      : answers_(std::move(answers)), id_(id), tell_(std::move(tell)) {}

  void Listen(const std::shared_ptr<Stream>& self) {
    self_ = self;
    answers_.pipe().OnEndAtCallee([weak = std::weak_ptr(self)](const absl::Status&) {
      if (const auto stream = weak.lock()) stream->Lost();
    });
  }
  void Take(const DecodeRequest& request) override {
    if (ended_) return;
    if (absl::Status taken = Handle(request); !taken.ok()) {
      End(taken);
      if (opened_) tell_(decode::StreamLost{id_});
    }
  }
  void Lost() {
    ended_ = true;
    if (opened_) tell_(decode::StreamLost{id_});
  }

  void SendReady(uint32_t attempt, int32_t blocks_held) override {
    DecodeResponse response;
    response.mutable_ready()->set_attempt(attempt);
    response.mutable_ready()->set_blocks_held(blocks_held);
    Send("ready", std::move(response));
  }
  void SendCommitted(uint32_t attempt, uint64_t kv_bytes) override {
    DecodeResponse response;
    response.mutable_committed()->set_attempt(attempt);
    response.mutable_committed()->set_kv_bytes(kv_bytes);
    Send("committed", std::move(response));
  }
  void SendToken(uint32_t choice, int32_t index, const engine::SampledToken& token) override {
    DecodeResponse response;
    response.mutable_tokens()->set_choice(choice);
    response.mutable_tokens()->set_first_index(index);
    *response.mutable_tokens()->add_tokens() = wire::ToProto(token);
    Send("token", std::move(response));
  }
  void SendEnded(uint32_t choice, engine::EndReason reason, int32_t generated) override {
    DecodeResponse response;
    response.mutable_ended()->set_choice(choice);
    response.mutable_ended()->set_reason(wire::ToProto(reason));
    response.mutable_ended()->set_generated(generated);
    Send("ended", std::move(response));
  }
  void SendPreempted(uint32_t choice) override {
    SETU_CHECK(!promised_all_, "who was promised all blocks loses none");
    DecodeResponse response;
    response.mutable_preempted()->set_choice(choice);
    Send("preempted", std::move(response));
  }
  void SendTransferStalled(uint32_t attempt) override {
    DecodeResponse response;
    response.mutable_transfer_stalled()->set_attempt(attempt);
    Send("stalled", std::move(response));
  }
  void SendDraining() override {
    DecodeResponse response;
    response.mutable_draining();
    Send("draining", std::move(response));
  }
  void End(const absl::Status& status) override {
    if (std::exchange(ended_, true)) return;
    answers_.End(status);
  }

 private:
  void Send(const char* what, DecodeResponse response) {
    if (!ended_) answers_.Send(what, std::move(response));
  }
  absl::Status Handle(const DecodeRequest& request) {
    if (opened_ == request.has_open()) return absl::InvalidArgumentError("one open, then others");
    switch (request.event_case()) {
      case DecodeRequest::kOpen: {
        absl::StatusOr<wire::Sequence> sequence =
            wire::FromProto(request.open().sequence(), kVocabulary);
        if (!sequence.ok()) return sequence.status();
        opened_ = true;
        promised_all_ = request.open().promise_all();
        tell_(decode::Opened{id_, request.open().attempt(), *std::move(sequence),
                             request.open().prefill_here(), promised_all_, self_.lock()});
        break;
      }
      case DecodeRequest::kRetry:
        tell_(decode::Retried{id_, request.retry().attempt()});
        break;
      case DecodeRequest::kStopChoice:
        tell_(decode::ChoiceStopped{id_, request.stop_choice().choice()});
        break;
      default:
        tell_(decode::TokensDelivered{id_, request.delivered().choice(),
                                      request.delivered().next_index()});
    }
    return absl::OkStatus();
  }

  const Answers<DecodeResponse> answers_;
  const decode::RequestId id_;
  const Tell tell_;
  std::weak_ptr<Stream> self_;
  bool opened_ = false;
  bool promised_all_ = false;
  bool ended_ = false;
};

// As PushCall in common/kv_transfer/kv_transfer_service.cc: one part at a time. The one that is
// being read when the push ends is still handled.
class PushStream final : public kv_transfer::PushStream, public PushSession {
 public:
  PushStream(kv_transfer::Receiver& receiver, std::function<void(const absl::Status&)> done)
      : receiver_(receiver), done_(std::move(done)) {}

  void Listen(Pipe& pipe, const std::shared_ptr<PushStream>& self) {
    self_ = self;
    pipe.OnEndAtCallee([weak = std::weak_ptr(self)](const absl::Status& why) {
      if (const auto stream = weak.lock()) stream->Fail(why);
    });
  }
  void Take(const worker::v1::PushKvRequest& part) override {
    parts_.push_back(part);
    Read();
  }
  void Proceed() override {
    reading_ = !ended_;
    Read();
  }
  void End(const absl::Status& status) override {
    if (!std::exchange(ended_, true)) done_(status);
  }

 private:
  void Read() {
    while (reading_ && !parts_.empty()) {
      reading_ = false;
      const worker::v1::PushKvRequest part = std::move(parts_.front());
      parts_.pop_front();
      if (absl::Status taken = Handle(part); !taken.ok()) return Fail(taken);
      if (part.has_frame()) reading_ = !ended_;
    }
  }
  absl::Status Handle(const worker::v1::PushKvRequest& part) {
    if (part.has_manifest()) {
      absl::StatusOr<std::shared_ptr<kv_transfer::Transfer>> found =
          receiver_.Find(part.manifest());
      if (!found.ok()) return found.status();
      if (transfer_ != nullptr) return absl::InvalidArgumentError("a second manifest");
      transfer_ = *found;
      return transfer_->Begin(part.manifest(), self_.lock());
    }
    if (transfer_ == nullptr) return absl::InvalidArgumentError("no manifest");
    return part.has_frame() ? transfer_->Take(part.frame()) : transfer_->Commit(part.commit());
  }
  void Fail(const absl::Status& why) {
    if (transfer_ != nullptr) transfer_->Lost(this, why);
    End(why);
  }

  kv_transfer::Receiver& receiver_;
  const std::function<void(const absl::Status&)> done_;
  std::weak_ptr<PushStream> self_;
  std::shared_ptr<kv_transfer::Transfer> transfer_;
  std::deque<worker::v1::PushKvRequest> parts_;
  bool reading_ = true;
  bool ended_ = false;
};

}  // namespace

DecodeNode::DecodeNode(Timeline& timeline, std::string address, const DecodeSetup& setup)
    : Node(timeline, std::move(address)), setup_(setup) {}

DecodeNode::~DecodeNode() = default;

std::shared_ptr<DecodeSession> DecodeNode::Accept(Answers<DecodeResponse> answers) {
  auto stream = std::make_shared<Stream>(
      std::move(answers), ++process_->next_id,
      [process = process_.get()](decode::Event event) { process->Tell(std::move(event)); });
  stream->Listen(stream);
  return stream;
}

std::shared_ptr<PushSession> DecodeNode::AcceptPush(std::shared_ptr<Pipe> pipe,
                                                    std::function<void(const absl::Status&)> done) {
  auto stream = std::make_shared<PushStream>(process_->receiver, std::move(done));
  stream->Listen(*pipe, stream);
  return stream;
}

LoadReports& DecodeNode::reports() { return process_->reports; }

void DecodeNode::Drain() {
  if (process_ != nullptr) process_->Tell(decode::DrainAsked{});
}

const decode::Snapshot* DecodeNode::snapshot() const {
  return process_ == nullptr ? nullptr : &process_->snapshot;
}

void DecodeNode::StartProcess() { process_ = std::make_unique<Process>(*this); }

void DecodeNode::EndProcess() { process_ = nullptr; }

bool DecodeNode::Turn() { return process_->loop.Turn(); }

std::optional<TimePoint> DecodeNode::next_timer() const { return process_->loop.next_timer(); }

}  // namespace setu::simulator
