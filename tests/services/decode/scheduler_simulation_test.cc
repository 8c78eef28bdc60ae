// SPDX-License-Identifier: Apache-2.0
// Random lives of many requests over one small pool, with everything that can happen to them; the
// bookkeeping must hold after each step of each seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "services/decode/request.h"
#include "services/decode/scheduler.h"

namespace setu::decode {
namespace {

constexpr int32_t kBlockTokens = 4;

class Simulation {
 public:
  explicit Simulation(uint32_t seed)
      : random_(seed),
        pool_(8 + Below(40)),
        room_(pool_, {.block_tokens = kBlockTokens,
                      .max_sequences = 1 + Below(12),
                      .max_sequence_tokens = pool_.total() * kBlockTokens,
                      .grant_output_tokens = 1 + Below(20),
                      .resume_watermark = Below(4)}),
        storage_(*kv::KvStorage::Create(
            {.block_tokens = kBlockTokens, .layers = 1, .kv_heads = 1, .head_dim = 1},
            pool_.total())) {}

  void Run() {
    for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
      Act();
      Check();
    }
    // With no newcomer, whoever is the oldest gets on until nobody is left.
    for (auto& request : requests_) {
      while (request->state != Request::State::kRunning) Receive(*request);
    }
    const int64_t enough = int64_t{room_.limits().max_sequences} * pool_.total() * kBlockTokens;
    for (int64_t i = 0; i < enough && !scheduler_.running().empty(); ++i) {
      for (Sequence* sequence : scheduler_.running()) sequence->paused_since.reset();
      Step();
      Check();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(scheduler_.running().empty());
    requests_.clear();
    EXPECT_EQ(pool_.free(), pool_.total());
    EXPECT_EQ(room_.promised(), 0);
    EXPECT_EQ(room_.sequences(), 0);
  }

 private:
  int32_t Below(uint32_t n) { return static_cast<int32_t>(random_() % n); }

  void Act() {
    const int32_t action = Below(10);
    if (action == 0 || requests_.empty()) return Open();
    Request& request = *requests_[Below(requests_.size())];
    if (action == 1) return Cancel(request);
    if (action <= 3) return Receive(request);
    if (action == 4) return DropPartial(request);
    if (action == 5) return TogglePause(request);
    Step();
  }

  void Open() {
    auto request = std::make_unique<Request>();
    request->sequence.prompt_length = 1 + Below(20);
    request->sequence.sampling.max_tokens = 2 + Below(40);
    const bool resumed = Below(3) == 0;
    request->sequence.ids.resize(request->sequence.prompt_length + (resumed ? 1 : 0));
    for (int32_t choice = resumed ? 0 : Below(3); choice >= 0; --choice) {
      request->sequence.choices.push_back(choice);
    }
    Demand demand = DemandOf(request->sequence);
    demand.all_output = Below(4) == 0;
    absl::StatusOr<Grant> grant = room_.Promise(demand);
    if (!grant.ok()) return;
    request->grant = *std::move(grant);
    requests_.push_back(std::move(request));
  }

  void Cancel(Request& request) {
    for (const auto& sequence : request.running) scheduler_.Leave(*sequence);
    Forget(request);
  }

  // Half of the time only to the bound state, from which a retry may drop it.
  void Receive(Request& request) {
    if (request.state == Request::State::kGranted) {
      request.lease = request.grant.Take(request.grant.shape().prompt);
      request.state = Request::State::kReceiving;
      if (Below(2) == 0) return;
    }
    if (request.state != Request::State::kReceiving) return;
    request.state = Request::State::kRunning;
    for (uint32_t choice : request.sequence.choices) {
      scheduler_.Join(Fork(request, {.choice = choice}, *storage_, pool_));
    }
    request.running.front()->lease = std::move(request.lease);
    request.grant.Release();
  }

  void DropPartial(Request& request) {
    if (request.state != Request::State::kReceiving) return;
    request.grant.PutBack(std::move(request.lease));
    request.state = Request::State::kGranted;
  }

  void TogglePause(Request& request) {
    for (const auto& sequence : request.running) {
      const bool paused = sequence->paused_since.has_value();
      sequence->paused_since = paused ? std::nullopt : std::optional(TimePoint());
    }
  }

  void Step() {
    const Sequence* oldest = scheduler_.running().empty() ? nullptr : scheduler_.running().front();
    const Scheduler::Plan& plan = scheduler_.Next();
    EXPECT_LE(static_cast<int32_t>(plan.batch.size()), room_.limits().max_sequences);
    EXPECT_EQ(std::ranges::count(plan.preempted, oldest), 0);
    for (Sequence* sequence : plan.preempted) {
      EXPECT_EQ(std::ranges::count(plan.batch, sequence), 0);
      EXPECT_FALSE(sequence->grant.shape().all_output);
      Remove(*sequence);
    }
    for (Sequence* sequence : plan.batch) {
      EXPECT_FALSE(sequence->paused_since);
      EXPECT_GE(sequence->lease.size() * kBlockTokens, static_cast<int32_t>(sequence->ids.size()));
      sequence->ids.push_back(0);
      if (Generated(*sequence) < sequence->request->sequence.sampling.max_tokens) continue;
      scheduler_.Leave(*sequence);
      Remove(*sequence);
    }
  }

  void Remove(Sequence& sequence) {
    Request& request = *sequence.request;
    std::erase_if(request.running, [&](const auto& s) { return s.get() == &sequence; });
    if (request.running.empty()) Forget(request);
  }

  void Forget(Request& request) {
    std::erase_if(requests_, [&](const auto& r) { return r.get() == &request; });
  }

  void Check() {
    int32_t sequences = 0, promised = 0;
    std::vector<bool> held(pool_.total(), false);
    auto count = [&](const kv::BlockLease& lease) {
      for (kv::BlockId block : lease.blocks()) held[block] = true;
    };
    for (const auto& request : requests_) {
      promised += request->grant.blocks();
      count(request->lease);
      const bool started = request->state == Request::State::kRunning;
      sequences += started ? request->running.size() : request->sequence.choices.size();
      for (const auto& sequence : request->running) {
        promised += sequence->grant.blocks();
        count(sequence->lease);
      }
    }
    EXPECT_EQ(room_.promised(), promised);
    EXPECT_EQ(room_.sequences(), sequences);
    EXPECT_EQ(pool_.held(), std::ranges::count(held, true));
    EXPECT_EQ(pool_.held() + pool_.free(), pool_.total());
    EXPECT_LE(promised, pool_.free()) << "promised blocks must be there to take";
    EXPECT_LE(sequences, room_.limits().max_sequences);
  }

  std::mt19937 random_;
  kv::BlockPool pool_;
  Room room_;
  std::unique_ptr<kv::KvStorage> storage_;
  Scheduler scheduler_{room_};
  std::vector<std::unique_ptr<Request>> requests_;
};

TEST(SchedulerSimulation, BookkeepingHoldsAndTheOldestGetsOn) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace setu::decode
