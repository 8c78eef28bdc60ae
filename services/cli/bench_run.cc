// SPDX-License-Identifier: Apache-2.0
#include "services/cli/bench_run.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "services/cli/inference_client.h"
#include "services/cli/load/load_client.h"
#include "services/cli/load/round.h"

namespace setu::cli {
namespace {

// Text of everyday words, so that prompts of any model have real tokens.
constexpr char kText[] =
    "A bridge carries people over water, and its builders count what each stone must bear. In the "
    "morning the market on the far side opens; carts wait in line, and whoever comes first goes "
    "first. When the river rises, the keeper closes one lane and writes down who passed. ";

// A side with what its rounds need.
struct Runner {
  Side side;
  std::unique_ptr<LoadClient> client;
  std::vector<uint32_t> vocabulary;  // each id once
  SideResult result;
};

int64_t StreamsOf(const std::vector<Workload>& workloads, int64_t most_open) {
  int64_t streams = 0;
  for (const Workload& workload : workloads) {
    if (IsOpen(workload.arrivals)) return most_open;
    if (const auto* closed = std::get_if<Closed>(&workload.arrivals)) streams += closed->clients;
    if (const auto* lock = std::get_if<Lockstep>(&workload.arrivals)) streams += lock->clients;
  }
  return streams;
}

absl::StatusOr<Runner> MakeRunner(Side side, int64_t most_open) {
  constexpr std::chrono::seconds kLimit(10);
  InferenceClient asked({.address = side.address, .token = side.workloads[0].token});
  auto ids = asked.Tokenize(kText, kLimit);
  if (!ids.ok()) return ids.status();
  if (ids->empty()) return absl::InternalError("the router made no token ids of a long text");
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
  const int connections = LoadClient::ConnectionsFor(StreamsOf(side.workloads, most_open));
  auto client = std::make_unique<LoadClient>(side.address, connections);
  client->WaitConnected(kLimit);
  SideResult result{.name = side.name, .address = side.address, .workloads = {}};
  for (const Workload& workload : side.workloads) {
    result.workloads.push_back({workload.name, workload.targets, {}});
  }
  return Runner{std::move(side), std::move(client), *std::move(ids), std::move(result)};
}

// Says how far it is, ten times a second.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  ~Progress() {
    if (shown_ && said_) std::fputs("\n", stderr);
  }
  void OnEnd(const std::string& side, int32_t round) {
    ++ended_;
    const TimePoint now = clock_.Now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    said_ = true;
    std::fprintf(stderr, "\rround %d, %s: %lld requests ended", round + 1, side.c_str(),
                 static_cast<long long>(ended_));
  }

 private:
  const SteadyClock clock_;
  const bool shown_;
  bool said_ = false;
  int64_t ended_ = 0;
  TimePoint last_{};
};

// Answers per second of the knee's last round; the others of its run take their rate from it.
absl::Status SetRates(const Runner& knee, std::vector<Runner>& runners) {
  const Tally& tally = knee.result.workloads[0].rounds.back();
  if (tally.answered() == 0) {
    std::string why = tally.first_error.empty() ? "" : tally.first_error.begin()->second;
    return absl::UnavailableError(
        absl::StrCat("no request of the knee ended OK, so there is no capacity: ", why));
  }
  const auto steady = tally.steady();
  const double capacity = steady && steady->answered > 0 ? steady->PerSecond(steady->answered)
                                                         : tally.PerSecond(tally.answered());
  for (Workload& workload : runners[1].side.workloads) {
    workload = AtRate(std::move(workload), *workload.times_capacity * capacity);
  }
  return absl::OkStatus();
}

bool IsKnee(const Side& side) {
  return side.workloads[0].times_capacity && !IsOpen(side.workloads[0].arrivals);
}

}  // namespace

absl::StatusOr<LoadReport> RunSides(std::vector<Side> sides, const RunLimits& limits,
                                    const std::stop_token& stop) {
  std::vector<Runner> runners;
  for (Side& side : sides) {
    SETU_ASSIGN_OR_RETURN(Runner runner, MakeRunner(std::move(side), limits.most_open));
    runners.push_back(std::move(runner));
  }
  Progress progress(limits.shows_progress);
  const TimePoint start = SteadyClock().Now();
  for (int32_t number = 0; number < limits.rounds; ++number) {
    for (uint32_t s = 0; s < runners.size() && !stop.stop_requested(); ++s) {
      Runner& runner = runners[s];
      const Round round{.seed = static_cast<uint64_t>(limits.seed),
                        .number = static_cast<uint32_t>(number),
                        .side = s,
                        .vocabulary = runner.vocabulary,
                        .most_open = limits.most_open,
                        .timeline_start = start,
                        .on_end = [&] { progress.OnEnd(runner.side.name, number); }};
      std::vector<Tally> tallies = RunRound(*runner.client, runner.side.workloads, round, stop);
      for (size_t w = 0; w < tallies.size(); ++w) {
        runner.result.workloads[w].rounds.push_back(std::move(tallies[w]));
      }
      if (IsKnee(runner.side) && !stop.stop_requested()) {
        SETU_RETURN_IF_ERROR(SetRates(runner, runners));
      }
    }
  }
  LoadReport report{.seed = limits.seed, .sides = {}};
  for (Runner& runner : runners) {
    if (!runner.result.workloads[0].rounds.empty())
      report.sides.push_back(std::move(runner.result));
  }
  return report;
}

}  // namespace setu::cli
