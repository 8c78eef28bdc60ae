// SPDX-License-Identifier: Apache-2.0
#include "services/cli/cores.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "kernels/numa.h"

namespace setu::cli {
namespace {

int NumberIn(const std::filesystem::path& file) {
  int number = 0;
  std::ifstream(file) >> number;
  return number;
}

}  // namespace

std::vector<Cpu> CpusHere(std::span<const int> ids, const std::string& root) {
  std::vector<Cpu> cpus;
  for (const int id : ids) {
    const std::filesystem::path folder = absl::StrCat(root, "/sys/devices/system/cpu/cpu", id);
    cpus.push_back({.node = kernels::NodeOf(id, root),
                    .package = NumberIn(folder / "topology/physical_package_id"),
                    .core = NumberIn(folder / "topology/core_id"),
                    .id = id});
  }
  std::ranges::sort(cpus);
  return cpus;
}

absl::StatusOr<Cores> HandOut(const std::string& pin, std::span<const Cpu> cpus, int32_t usable,
                              int32_t threads, int32_t workers) {
  const int64_t wanted = int64_t{threads} * workers, there = std::ssize(cpus);
  if (pin == "on" && wanted > there) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pin-threads=on: ", workers, " workers with ", threads,
                     " threads each need ", wanted, " cores, and there are ", there,
                     "; give fewer workers or --threads, or --pin-threads=auto"));
  }
  const bool roomy = wanted <= there && usable >= there && threads > 1;
  if (pin == "off" || (pin == "auto" && !roomy)) return Cores{};
  Cores cores(workers);
  for (size_t worker = 0; worker < cores.size(); ++worker) {
    for (const Cpu& cpu : cpus.subspan(worker * threads, threads)) cores[worker].push_back(cpu.id);
    std::ranges::sort(cores[worker]);
  }
  return cores;
}

std::string CpuList(std::span<const int> ids) {
  std::string list;
  for (size_t first = 0, end = 0; first < ids.size(); first = end) {
    for (end = first + 1; end < ids.size() && ids[end] == ids[end - 1] + 1;) ++end;
    absl::StrAppend(&list, list.empty() ? "" : ",", ids[first]);
    if (end - first > 1) absl::StrAppend(&list, "-", ids[end - 1]);
  }
  return list;
}

}  // namespace setu::cli
