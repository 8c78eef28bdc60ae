// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/simulation.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "services/router/validator.h"
#include "tests/services/router/byte_tokenizer.h"
#include "tests/simulator/cluster.h"
#include "tests/simulator/faults.h"
#include "tests/simulator/hash_model.h"

namespace setu::simulator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// From the start. All requests have ended by kAllEnded, whatever became of them.
constexpr Duration kFirstFault = milliseconds(900);
constexpr Duration kLivenessHeal = seconds(30);
constexpr Duration kAllEnded = seconds(83);
constexpr Duration kProbes = seconds(110);  // a machine's loss is known everywhere
constexpr int32_t kProbeCount = 4;
constexpr Duration kTwins = kProbes + seconds(4);
constexpr Duration kTwinTime = seconds(2);
constexpr Duration kProbeTime = seconds(10);
// Where messages are lost, decode waits for its reader once.
constexpr Duration kStallTime = seconds(31);

class Simulation {
 public:
  Simulation(uint64_t seed, Mode mode, bool trace)
      : mode_(mode),
        dice_(Mixed(seed) + static_cast<uint64_t>(mode)),
        timeline_(trace),
        judge_(timeline_),
        scenario_(DrawScenario(mode, dice_)),
        validator_({.name = "hash", .tokenizer = &tokenizer_}, [] { return uint64_t{1}; }),
        cluster_(timeline_, dice_, scenario_),
        faults_(timeline_, dice_, cluster_) {}

  Outcome Run() {
    PlanRequests();
    PlanFaults();
    PlanProbes();
    PlanTwins();
    const Duration rest = mode_ == Mode::kSafety ? kProbeTime + kStallTime : kProbeTime;
    const TimePoint end = timeline_.Now() + kProbes + rest;
    while (judge_.wrong().empty() && timeline_.Now() < end && timeline_.RunNext()) {
      cluster_.CheckAlways(judge_);
    }
    if (judge_.wrong().empty()) {
      CheckAllEnded();
      CheckTwins();
      cluster_.CheckAtRest(judge_);
    }
    return Result();
  }

 private:
  std::shared_ptr<Client> MakeClient(const Wish& wish) {
    absl::StatusOr<router::ValidRequest> request =
        validator_.Validate(wish.request, {.context_length = kContext});
    SETU_CHECK(request.ok(), "what is drawn is valid");
    clients_.push_back(
        std::make_shared<Client>(timeline_, judge_, asked_, *std::move(request), wish));
    return clients_.back();
  }

  void PlanRequests() {
    for (const Asking& asking : scenario_.askings) {
      timeline_.After(asking.at, [this, &asking] {
        const std::shared_ptr<Client> client = MakeClient(asking.wish);
        client->Ask(*cluster_.routers()[asking.router]);
        timeline_.After(asking.wish.patience + milliseconds(1), [this, client] {
          judge_.Expect(client->ended(),
                        [&] { return client->name() + " has not ended by its deadline"; });
        });
      });
    }
  }

  void PlanFaults() {
    const Duration heal = mode_ == Mode::kSafety ? kAllEnded : kLivenessHeal;
    for (int32_t i = 0; i < scenario_.faults; ++i) {
      faults_.Plan(timeline_.Now() + dice_.Between(kFirstFault, heal));
    }
    timeline_.After(kFirstFault,
                    [this] { cluster_.network().SetMessageFaults(scenario_.messages); });
    timeline_.After(heal, [this] { faults_.Heal(); });
  }

  void PlanProbes() {
    timeline_.After(kProbes, [this] {
      for (int32_t i = 0; i < kProbeCount; ++i) {
        const size_t router = static_cast<size_t>(i) % cluster_.routers().size();
        MakeClient(ProbeWish(i, dice_))->Ask(*cluster_.routers()[router]);
      }
    });
  }

  // One prompt of equal blocks twice, one after the other has ended.
  void PlanTwins() {
    for (int32_t i = 0; i < 2; ++i) {
      timeline_.After(kTwins + i * kTwinTime, [this, i] {
        twins_.push_back(MakeClient(TwinWish(i)));
        twins_.back()->Ask(*cluster_.routers().front());
      });
    }
  }

  // What a cache has room for is found again: where there is one way to compute a prompt.
  void CheckTwins() {
    const bool known = !scenario_.router.local_prefill && scenario_.prefill.size() == 1 &&
                       scenario_.decode.size() == 1 && scenario_.prefill[0].options.prefix_cache &&
                       scenario_.decode[0].options.prefix_cache;
    const int32_t most = (kTwinPrompt - 1) / kBlockTokens * kBlockTokens;
    judge_.Expect(!known || twins_[1]->cached_tokens() >= most, [&] {
      return absl::StrCat("of a prompt that was just computed ", twins_[1]->cached_tokens(),
                          " tokens were known, not ", most);
    });
  }

  void CheckAllEnded() {
    for (const auto& client : clients_) {
      judge_.Expect(client->ended(), [&] { return client->name() + " has not ended"; });
    }
  }

  Outcome Result() {
    Outcome outcome;
    outcome.wrong = judge_.wrong();
    outcome.trace = timeline_.lines();
    outcome.digest = timeline_.digest();
    outcome.events = timeline_.events();
    for (const auto& client : clients_) {
      outcome.counts["tokens"] += static_cast<uint64_t>(client->tokens());
      if (client->ended()) {
        ++outcome.counts[absl::StatusCodeToString(client->status().code())];
      }
    }
    for (const auto& router : cluster_.routers()) {
      if (const router::FlowCounts* counts = router->counts()) {
        outcome.counts["resumes"] += counts->resumes.total();
        outcome.counts["rebalanced"] += counts->resumes.rebalanced;
        outcome.counts["retries"] += counts->retries;
        outcome.counts["local prefills"] += counts->local_prefills;
      }
    }
    for (const auto& decode : cluster_.decode()) {
      if (const decode::Snapshot* now = decode->snapshot()) {
        outcome.counts["preemptions"] += now->preemptions;
        outcome.counts["known tokens"] += now->prefix_tokens_known;
      }
    }
    return outcome;
  }

  const Mode mode_;
  Dice dice_;
  Timeline timeline_;
  Judge judge_;
  Asked asked_;
  const Scenario scenario_;
  const router::ByteTokenizer tokenizer_;
  const router::Validator validator_;
  std::vector<std::shared_ptr<Client>> clients_, twins_;
  Cluster cluster_;
  Faults faults_;
};

}  // namespace

Outcome Simulate(uint64_t seed, Mode mode, bool trace) {
  return Simulation(seed, mode, trace).Run();
}

}  // namespace setu::simulator
