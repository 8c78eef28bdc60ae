// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/round.h"

#include <memory>

#include "services/cli/load/client_group.h"

namespace setu::cli {

std::vector<Tally> RunRound(LoadClient& client, const std::vector<Workload>& workloads,
                            const Round& round, const std::stop_token& stop) {
  const SteadyClock clock;
  rpc::EventLoop loop(clock, /*capacity=*/1);
  RoundContext context{.loop = loop,
                       .client = client,
                       .vocabulary = round.vocabulary,
                       .begin = clock.Now(),
                       .most_open = round.most_open,
                       .on_end = round.on_end};
  std::vector<std::unique_ptr<ClientGroup>> groups;
  size_t under_way = workloads.size();
  for (uint32_t w = 0; w < workloads.size(); ++w) {
    groups.push_back(std::make_unique<ClientGroup>(context, workloads[w],
                                                   SeedsOf(round.seed, round.number, round.side, w),
                                                   round.timeline_start, [&] {
                                                     if (--under_way == 0) loop.Stop();
                                                   }));
  }
  for (const auto& group : groups) loop.PostCompletion([&group] { group->Start(); });
  {
    const std::stop_callback break_off(stop, [&] {
      loop.PostCompletion([&] {
        for (const auto& group : groups) group->Stop();
      });
    });
    loop.Run();
  }
  std::vector<Tally> tallies;
  for (const auto& group : groups) tallies.push_back(group->TakeTally());
  return tallies;
}

}  // namespace setu::cli
