// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/sides.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace setu::cli {
namespace {

absl::StatusOr<std::vector<Workload>> LoadAll(const std::vector<std::string>& files,
                                              LoadWorkload load) {
  std::vector<Workload> workloads;
  for (const std::string& file : files) {
    SETU_ASSIGN_OR_RETURN(Workload workload, load(file));
    workloads.push_back(std::move(workload));
  }
  return workloads;
}

bool OfCapacity(const Workload& workload) { return workload.times_capacity.has_value(); }

std::vector<Side> KneeAndLoad(const SideFlags& flags, const Workload& workload) {
  const std::string times = absl::StrCat(*workload.times_capacity, "x");
  if (flags.capacity) {
    const double rate = *workload.times_capacity * *flags.capacity;
    return {{times, flags.address, {AtRate(workload, rate)}}};
  }
  return {{"knee", flags.address, {KneeOf(workload)}}, {times, flags.address, {workload}}};
}

}  // namespace

absl::StatusOr<std::vector<Side>> MakeSides(const SideFlags& flags, LoadWorkload load) {
  const int ways = !flags.beside.empty() + !flags.versus.empty() + !flags.address_versus.empty();
  if (ways > 1) {
    return absl::InvalidArgumentError(
        "--beside, --versus and --address-versus each say what to compare with; give one of them");
  }
  std::vector<std::string> files = flags.files;
  if (files.empty()) files.emplace_back();
  SETU_ASSIGN_OR_RETURN(std::vector<Workload> workloads, LoadAll(files, load));
  SETU_ASSIGN_OR_RETURN(const std::vector<Workload> beside, LoadAll(flags.beside, load));
  SETU_ASSIGN_OR_RETURN(const std::vector<Workload> versus, LoadAll(flags.versus, load));
  if (std::any_of(workloads.begin(), workloads.end(), OfCapacity) ||
      std::any_of(beside.begin(), beside.end(), OfCapacity) ||
      std::any_of(versus.begin(), versus.end(), OfCapacity)) {
    if (workloads.size() > 1 || ways > 0) {
      return absl::InvalidArgumentError("a workload with --times-capacity runs by itself");
    }
    return KneeAndLoad(flags, workloads[0]);
  }
  const std::string name = beside.empty() ? workloads[0].name : "alone";
  std::vector<Side> sides = {{name, flags.address, workloads}};
  if (!beside.empty()) {
    workloads.insert(workloads.end(), beside.begin(), beside.end());
    sides.push_back({"beside", flags.address, std::move(workloads)});
  }
  for (const Workload& other : versus) sides.push_back({other.name, flags.address, {other}});
  for (const std::string& address : flags.address_versus) {
    sides[0].name = flags.address;
    sides.push_back({address, address, sides[0].workloads});
  }
  return sides;
}

}  // namespace setu::cli
