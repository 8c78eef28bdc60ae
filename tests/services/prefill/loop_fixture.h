// SPDX-License-Identifier: Apache-2.0
// A prefill loop on its own thread, between a test that asks and a peer that takes KV; and what the
// model says alone. Afterwards everything must have come back.
#ifndef SETU_TESTS_SERVICES_PREFILL_LOOP_FIXTURE_H_
#define SETU_TESTS_SERVICES_PREFILL_LOOP_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/engine/sampler.h"
#include "common/kv_transfer/sender.h"
#include "services/prefill/loop.h"
#include "tests/common/roofline/model_fixture.h"
#include "tests/services/prefill/prefill_fixture.h"
#include "tests/support/keeping_logger.h"

namespace setu::prefill {

using Record = RecordingReply::Record;

// A loop with its thread.
class RunningLoop : public Loop {
 public:
  template <typename... Arguments>
  explicit RunningLoop(Arguments&&... arguments)
      : Loop(std::forward<Arguments>(arguments)...), thread_([this] { Run(); }) {}
  ~RunningLoop() { Stop(); }
  void Stop() {
    Loop::Stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    while (!over()) {
      if (!Turn()) Wait();
    }
  }
  std::thread thread_;
};

class LoopTest : public PrefillFixture {
 protected:
  void Start(LoopOptions options, int32_t blocks = 64) {
    runner_ = Load(blocks);
    loop_.emplace(
        options, *runner_, roofline::BillionModel(),
        [this](const std::string& address, kv_transfer::PushPlan plan, kv_transfer::PushDone done) {
          return kv_transfer::GrpcPush::Start(channels_.Connect(address), runner_->storage(),
                                              staging_.get(), std::move(plan), clock_,
                                              std::move(done));
        },
        /*probe=*/nullptr, clock_, log_,
        [this](const Snapshot& s, auto) {
          snapshots_.Change([&](Snapshot& latest) { latest = s; });
        });
  }

  void TearDown() override {
    if (!loop_) return;
    const Snapshot last = Idle();
    EXPECT_EQ(last.blocks_free, last.blocks_total);
    loop_.reset();
  }

  Snapshot Idle() {
    const Snapshot s =
        snapshots_.WaitFor([](const Snapshot& s) { return s.running == 0 && s.queued == 0; });
    EXPECT_EQ(s.admitted, s.finished + s.failed + s.cancelled);
    EXPECT_EQ(s.queued_tokens, 0);
    return s;
  }

  struct Asked {
    std::shared_ptr<RecordingReply> reply = std::make_shared<RecordingReply>();
    absl::StatusOr<PromptId> id = PromptId{0};
  };
  Asked Ask(wire::Sequence sequence, const std::string& address = "decode", bool resumed = false) {
    Asked asked;
    asked.id = loop_->Admit({.sequence = std::move(sequence),
                             .attempt = 1,
                             .decode_address = address,
                             .blocks_held = 0,
                             .resumed = resumed,
                             .reply = asked.reply});
    return asked;
  }
  Asked AskRandom(uint32_t seed, int32_t tokens, const std::string& address = "decode") {
    return Ask(GreedySequence("r" + std::to_string(seed), RandomIds(seed, tokens)), address);
  }

  // A prompt that holds `tokens` worth of blocks until it is cancelled: its peer takes nothing.
  Asked Occupy(int32_t tokens) {
    peer_.Misbehave({.after = 1});
    Asked asked = AskRandom(99, tokens);
    asked.reply->WaitForFirstTokens();
    peer_.WaitForMessages(0, 1);
    peer_.Misbehave({});
    return asked;
  }

  // What the model says alone, in one chunk.
  struct Alone {
    std::vector<std::vector<std::byte>> pieces;  // [block * layers + layer]
    std::vector<float> logits;
  };
  Alone ComputeAlone(const std::vector<engine::TokenId>& ids) {
    auto runner = Load();
    const auto lease = runner->pool().Take(kv::BlocksFor(ids.size(), 16));
    for (kv::BlockId block : lease->blocks()) {  // loading has left something there
      for (int32_t layer = 0; layer < 2; ++layer) {
        std::ranges::fill(runner->storage().Piece(block, layer), std::byte{0});
      }
    }
    const engine::StepEntry entry{.ids = ids, .blocks = lease->blocks(), .want_logits = true};
    const auto logits = runner->Step({&entry, 1});
    Alone alone;
    alone.logits.assign(logits.Row(0), logits.Row(0) + logits.cols);
    for (kv::BlockId block : lease->blocks()) {
      for (int32_t layer = 0; layer < runner->config().layers; ++layer) {
        const auto piece = runner->storage().Piece(block, layer);
        alone.pieces.emplace_back(piece.begin(), piece.end());
      }
    }
    return alone;
  }

  void ExpectSame(const test::KvPeer::Received& got, const Record& record,
                  const wire::Sequence& sequence) {
    const Alone alone = ComputeAlone(sequence.ids);
    const auto pieces = got.Pieces();
    EXPECT_EQ(pieces.size(), alone.pieces.size());
    for (const auto& [key, bytes] : pieces) {
      // Zero behind the last token, as what is sent must be.
      const auto& expected = alone.pieces[key.first * 2 + key.second];
      EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), expected.size()), 0)
          << "block " << key.first << " layer " << key.second;
    }
    engine::Sampler sampler(test::kTinyVocabulary);
    ASSERT_EQ(record.first_tokens.size(), sequence.choices.size());
    for (size_t i = 0; i < sequence.choices.size(); ++i) {
      EXPECT_EQ(record.first_tokens[i].choice, sequence.choices[i]);
      EXPECT_EQ(record.first_tokens[i].token,
                sampler.Sample(alone.logits, sequence.sampling,
                               {sequence.ids, sequence.prompt_length}, sequence.choices[i]));
    }
  }

  std::unique_ptr<engine::ModelRunner> runner_;
  std::unique_ptr<kv_transfer::SharedStaging> staging_;  // none, unless a test makes it
  test::KeepingLogger log_;
  Watched<Snapshot> snapshots_;
  std::optional<RunningLoop> loop_;
};

}  // namespace setu::prefill

#endif  // SETU_TESTS_SERVICES_PREFILL_LOOP_FIXTURE_H_
