// SPDX-License-Identifier: Apache-2.0
// What each request of a workload asks, as a pure function of the seeds and its index: same seeds,
// same plan, however the answers come.
//
//   Plan plan(workload, {.shape = 1, .content = 1});
//   PlannedRequest request = plan.Request(7);
//   std::vector<uint32_t> ids = plan.Prompt(7, request, vocabulary);
#ifndef SETU_SERVICES_CLI_LOAD_PLAN_H_
#define SETU_SERVICES_CLI_LOAD_PLAN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "services/cli/load/workload.h"

namespace setu::cli {

// Two, so that a second run can have the same arrivals and lengths with prompts that no cache has
// seen.
struct Seeds {
  uint64_t shape;    // arrivals, lengths, cancels, which prefix
  uint64_t content;  // the ids of prompts
};

// Of one workload of one side in one round: the shape is each side's, the content nobody else's.
Seeds SeedsOf(uint64_t seed, uint32_t round, uint32_t side, uint32_t workload);

struct PlannedRequest {
  std::optional<int32_t> prefix;  // which of the shared ones its prompt begins with
  int32_t prompt_tokens;          // behind that
  int32_t max_tokens;
  std::optional<int32_t> cancel_after;  // generated tokens
};

class Plan {
 public:
  // The workload must outlive the plan.
  Plan(const Workload& workload, const Seeds& seeds) : workload_(workload), seeds_(seeds) {}

  PlannedRequest Request(int64_t index) const;
  // Ids drawn from `vocabulary`, which is not empty; no two prompts begin alike but by a shared
  // prefix.
  std::vector<uint32_t> Prompt(int64_t index, const PlannedRequest& request,
                               std::span<const uint32_t> vocabulary) const;
  ArrivalTimes Arrivals() const { return ArrivalTimes(workload_.arrivals, seeds_.shape); }

 private:
  const Workload& workload_;
  const Seeds seeds_;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_PLAN_H_
