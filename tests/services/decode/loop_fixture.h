// SPDX-License-Identifier: Apache-2.0
// A loop turned by hand, between a fake prefill worker and fake streams: no threads, no RPC, no
// waiting. Afterwards everything must have come back.
#ifndef SETU_TESTS_SERVICES_DECODE_LOOP_FIXTURE_H_
#define SETU_TESTS_SERVICES_DECODE_LOOP_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "services/decode/loop.h"
#include "tests/common/roofline/model_fixture.h"
#include "tests/services/decode/fake_prefill.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::decode {

// Keeps all that the loop says to a router.
class RecordingStream final : public ReplyStream {
 public:
  void SendReady(uint32_t attempt, int32_t blocks_held) override {
    ready.push_back(attempt);
    held = blocks_held;
  }
  void SendCommitted(uint32_t attempt, uint64_t bytes) override {
    committed.emplace_back(attempt, bytes);
  }
  void SendToken(uint32_t choice, int32_t index, const engine::SampledToken& token) override {
    if (!ids.contains(choice)) first_index[choice] = index;
    EXPECT_EQ(index, first_index[choice] + std::ssize(ids[choice])) << "no gap, no repeat";
    EXPECT_FALSE(ended.contains(choice)) << "nothing after the end";
    ids[choice].push_back(token.id);
  }
  void SendEnded(uint32_t choice, engine::EndReason reason, int32_t generated) override {
    EXPECT_EQ(generated, first_index[choice] + std::ssize(ids[choice]));
    EXPECT_TRUE(ended.emplace(choice, reason).second);
  }
  void SendPreempted(uint32_t choice) override { preempted.push_back(choice); }
  void SendTransferStalled(uint32_t attempt) override { stalled.push_back(attempt); }
  void SendDraining() override { ++draining; }
  void End(const absl::Status& status) override {
    EXPECT_FALSE(end.has_value()) << "one end";
    end = status;
  }

  std::vector<uint32_t> ready, preempted, stalled;
  int32_t held = 0;
  std::vector<std::pair<uint32_t, uint64_t>> committed;
  std::map<uint32_t, std::vector<engine::TokenId>> ids;  // by choice
  std::map<uint32_t, int32_t> first_index;
  std::map<uint32_t, engine::EndReason> ended;
  int draining = 0;
  std::optional<absl::Status> end;
};

class KeepingLogger final : public Logger {
 public:
  void Write(Level, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

class FakePush final : public kv_transfer::PushStream {
 public:
  void Proceed() override { proceeded = true; }
  void End(const absl::Status& status) override { end = status; }
  bool proceeded = false;
  std::optional<absl::Status> end;
};

class LoopTest : public ::testing::Test {
 protected:
  static constexpr int32_t kBlocks = 64;

  void SetUp() override { Start({}, kBlocks); }
  void TearDown() override {
    for (const auto& [id, stream] : streams_) {
      if (!stream->end) inbox_->PushUnbounded(StreamLost{id});
    }
    loop_->Turn();
    ExpectAllBack();
  }

  // A new loop with a pool of its own.
  void Start(const WorkerOptions& options, int32_t blocks) {
    loop_.reset();
    started_ = clock_.Now();
    runner_ = LoadTiny(model_, blocks);
    inbox_ = std::make_unique<Inbox<Event>>(options.inbox_events);
    worker::v1::Fingerprint fingerprint = wire::ToProto(runner_->fingerprint());
    fingerprint.set_allow_mixed_numerics(true);
    receiver_ = std::make_unique<kv_transfer::Receiver>(
        fingerprint, runner_->config().vocabulary, runner_->storage(), clock_,
        [this](kv_transfer::TransferEvent event) {
          std::visit([this](auto& e) { inbox_->PushUnbounded(std::move(e)); }, event);
        });
    probe_.emplace(runner_->ops(), runner_->weights(), roofline::ProbeLockPath(), started_);
    loop_ =
        std::make_unique<Loop>(options, *runner_, step_model_, *receiver_, *inbox_, &*probe_,
                               clock_, logger_, [this](const Snapshot& s, auto) { snapshot_ = s; });
  }

  std::shared_ptr<RecordingStream> Open(const wire::Sequence& sequence, uint32_t attempt = 1,
                                        bool prefill_here = false, bool promise_all = false) {
    auto stream = std::make_shared<RecordingStream>();
    streams_.emplace_back(streams_.size() + 1, stream);
    inbox_->PushUnbounded(
        Opened{streams_.size(), attempt, sequence, prefill_here, promise_all, stream});
    loop_->Turn();
    return stream;
  }

  // The loop's name of the stream that was opened as the `nth`, from 1.
  template <typename E>
  void Say(E event) {
    inbox_->PushUnbounded(std::move(event));
    loop_->Turn();
  }

  // A push whose manifest was taken; it has its blocks where the loop gave some.
  struct Pushing {
    std::shared_ptr<FakePush> stream = std::make_shared<FakePush>();
    std::shared_ptr<kv_transfer::Transfer> transfer;
    absl::Status status;
  };
  Pushing Begin(const PushedKv& kv) {
    Pushing pushing;
    auto found = receiver_->Find(kv.manifest);
    pushing.status = found.status();
    if (!found.ok()) return pushing;
    pushing.transfer = *found;
    pushing.status = pushing.transfer->Begin(kv.manifest, pushing.stream);
    loop_->Turn();
    return pushing;
  }

  // The whole push, up to the loop's answer to the commit. What is refused is lost, as in the RPC.
  absl::Status Push(const PushedKv& kv) {
    Pushing pushing = Begin(kv);
    for (const worker::v1::Frame& frame : kv.frames) {
      if (pushing.status.ok()) pushing.status = pushing.transfer->Take(frame);
    }
    if (pushing.status.ok()) pushing.status = pushing.transfer->Commit(kv.commit);
    if (!pushing.status.ok()) {
      if (pushing.transfer) pushing.transfer->Lost(pushing.stream.get(), pushing.status);
      loop_->Turn();
      return pushing.status;
    }
    loop_->Turn();
    return pushing.stream->end.value_or(absl::UnknownError("no answer"));
  }

  std::shared_ptr<RecordingStream> OpenAndPush(const wire::Sequence& sequence) {
    std::shared_ptr<RecordingStream> stream = Open(sequence);
    const absl::Status pushed = Push(prefill_.Compute(sequence, 1, stream->held));
    EXPECT_TRUE(pushed.ok()) << pushed;
    return stream;
  }

  void TurnWhile(const std::function<bool()>& more) {
    for (int turns = 0; more(); ++turns) {
      ASSERT_LT(turns, 2000) << "no progress";
      loop_->Turn();
    }
  }
  void TurnToTheEnd(const std::vector<std::shared_ptr<RecordingStream>>& streams) {
    for (const auto& stream : streams) {
      TurnWhile([&] { return !stream->end.has_value(); });
    }
  }

  void ExpectAllBack() {
    EXPECT_EQ(runner_->pool().free(), runner_->pool().total());
    EXPECT_EQ(snapshot_.running, 0);
    EXPECT_EQ(snapshot_.sequences, 0);
    EXPECT_EQ(snapshot_.transfers, 0);
    EXPECT_EQ(snapshot_.blocks_held, 0);
    EXPECT_EQ(snapshot_.blocks_promised, 0);
    EXPECT_EQ(snapshot_.blocks_cached, runner_->pool().cached());
    EXPECT_EQ(snapshot_.admitted, snapshot_.finished + snapshot_.failed + snapshot_.cancelled);
    // For the next probe alone.
    EXPECT_GE(loop_->next_timer().value(), started_ + roofline::IdleProbe::kEvery);
  }

  test::TempDir dir_;
  const std::string model_ = test::WriteTinyModel(dir_);
  FakePrefill prefill_{model_};
  testing::FakeClock clock_;
  TimePoint started_;
  roofline::StepModel step_model_ = roofline::BillionModel();
  KeepingLogger logger_;
  Snapshot snapshot_;
  std::unique_ptr<engine::ModelRunner> runner_;
  std::unique_ptr<Inbox<Event>> inbox_;
  std::unique_ptr<kv_transfer::Receiver> receiver_;
  std::optional<roofline::IdleProbe> probe_;
  std::unique_ptr<Loop> loop_;
  std::vector<std::pair<RequestId, std::shared_ptr<RecordingStream>>> streams_;
};

}  // namespace setu::decode

#endif  // SETU_TESTS_SERVICES_DECODE_LOOP_FIXTURE_H_
