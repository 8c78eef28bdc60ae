// SPDX-License-Identifier: Apache-2.0
// Which cores each worker of a machine gets for itself. All but CpusHere is pure.
//
//   SETU_ASSIGN_OR_RETURN(const Cores cores, HandOut("auto", CpusHere(kernels::AvailableCpus()),
//                                                    kernels::AvailableThreads(), 4, 2));
//   if (!cores.empty()) Start(worker, cores[0]);
#ifndef SETU_SERVICES_CLI_CORES_H_
#define SETU_SERVICES_CLI_CORES_H_

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace setu::cli {

// Ordered by nearness: those of a node, then of a core (hyperthreads), stand together.
struct Cpu {
  int node = 0;
  int package = 0;
  int core = 0;  // within the package
  int id = 0;    // the system's number
  auto operator<=>(const Cpu&) const = default;
};

// Where these CPUs are, as sys/devices/system/cpu below `root` says; ascending.
std::vector<Cpu> CpusHere(std::span<const int> ids, const std::string& root = "/");

// Ids of the CPUs of each worker, ascending; no worker: all share all.
using Cores = std::vector<std::vector<int>>;

// Near ones for each of `workers` of so many threads. `pin`: "off" hands out none; "auto" does
// where `usable` threads are all of the CPUs, so that no quota is shared, and a worker has two or
// more, so that its own other threads find one; "on" always, or is INVALID_ARGUMENT where there are
// too few. `cpus` ascend.
absl::StatusOr<Cores> HandOut(const std::string& pin, std::span<const Cpu> cpus, int32_t usable,
                              int32_t threads, int32_t workers);

// "0-3,8"
std::string CpuList(std::span<const int> ids);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_CORES_H_
