// SPDX-License-Identifier: Apache-2.0
// Where memory lies on a machine of several nodes. Threads take the pieces of an op as they come,
// so no page has a thread that reads it: what all of them read is spread over the nodes they run
// on, and each reads from all memories at once. On one node, or with all threads on one, pages lie
// where they are first touched, which is there.
//
//   const std::vector<int> nodes = NodesOf(AvailableCpus());
//   Spread(pages, nodes);                          // before they are touched
#ifndef SETU_KERNELS_NUMA_H_
#define SETU_KERNELS_NUMA_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace setu::kernels {

// As sys/devices/system/cpu below `root` says; 0 where the system has no nodes.
int NodeOf(int cpu, const std::string& root = "/");
// Of all these CPUs, each once, ascending.
std::vector<int> NodesOf(std::span<const int> cpus, const std::string& root = "/");

// The nodes as mbind takes them, bit by bit. Empty where there is nothing to spread over.
std::vector<unsigned long> NodeMask(std::span<const int> nodes);

// The whole pages within go to the nodes in turn, as they are first touched; nothing where the
// nodes are fewer than two. A refusal of the system costs speed alone.
void Spread(std::span<std::byte> memory, std::span<const int> nodes);

}  // namespace setu::kernels

#endif  // SETU_KERNELS_NUMA_H_
