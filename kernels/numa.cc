// SPDX-License-Identifier: Apache-2.0
#include "kernels/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

namespace setu::kernels {
namespace {

constexpr int kMaskBits = 8 * sizeof(unsigned long);

}  // namespace

// The folder of a CPU has a link "node<number>".
int NodeOf(int cpu, const std::string& root) {
  const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    if (name.size() > 4 && name.starts_with("node") && std::isdigit(name[4]) != 0) {
      return std::atoi(name.c_str() + 4);
    }
  }
  return 0;
}

std::vector<int> NodesOf(std::span<const int> cpus, const std::string& root) {
  std::vector<int> nodes;
  for (const int cpu : cpus) nodes.push_back(NodeOf(cpu, root));
  std::ranges::sort(nodes);
  const auto [end, last] = std::ranges::unique(nodes);
  nodes.erase(end, last);
  return nodes;
}

std::vector<unsigned long> NodeMask(std::span<const int> nodes) {
  if (nodes.size() < 2) return {};
  std::vector<unsigned long> mask(std::ranges::max(nodes) / kMaskBits + 1);
  for (const int node : nodes) mask[node / kMaskBits] |= 1ul << (node % kMaskBits);
  return mask;
}

void Spread(std::span<std::byte> memory, std::span<const int> nodes) {
  const std::vector<unsigned long> mask = NodeMask(nodes);
  if (mask.empty()) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + memory.size()) / page * page;
  if (first >= end) return;
  // The system takes one bit less than it is told of.
  syscall(SYS_mbind, first, end - first, MPOL_INTERLEAVE, mask.data(), mask.size() * kMaskBits + 1,
          0);
}

}  // namespace setu::kernels
