// SPDX-License-Identifier: Apache-2.0
// What a run of `setu bench` puts beside each other. A side is workloads that run at once against
// one router; with several sides each round runs all of them in turn, so that what drifts on the
// machine drifts for all. Pure: `load` reads files.
#ifndef SETU_SERVICES_CLI_LOAD_SIDES_H_
#define SETU_SERVICES_CLI_LOAD_SIDES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "services/cli/load/workload.h"

namespace setu::cli {

struct Side {
  std::string name;
  std::string address;  // of the router
  std::vector<Workload> workloads;
};

struct SideFlags {
  std::string address = "127.0.0.1:50051";
  std::vector<std::string> files;           // workloads that run together; none: the flags alone
  std::vector<std::string> beside;          // files: without them, then with them
  std::vector<std::string> versus;          // files: each instead
  std::vector<std::string> address_versus;  // routers: each instead
  std::optional<double> capacity;           // requests per second, for times_capacity

  bool operator==(const SideFlags&) const = default;
};

// The workload of a file; of "", the one that flags alone describe.
using LoadWorkload = absl::FunctionRef<absl::StatusOr<Workload>(const std::string& file)>;

// The first side is what the others are compared with. Without a capacity, a workload of
// times_capacity is the second of two sides: the first is its knee, whose answers per second times
// that is to be its rate.
absl::StatusOr<std::vector<Side>> MakeSides(const SideFlags& flags, LoadWorkload load);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_SIDES_H_
