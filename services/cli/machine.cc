// SPDX-License-Identifier: Apache-2.0
#include "services/cli/machine.h"

#include <cstdlib>
#include <fstream>

namespace setu::cli {

std::string CpuModel() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

// "always [madvise] never": the one in brackets holds.
std::string HugePages() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  for (std::string word; in >> word;) {
    if (word.starts_with('[')) return word.substr(1, word.size() - 2);
  }
  return "not known";
}

int64_t HugePageBytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;) {
    int64_t kibibytes = 0;
    if (word == "AnonHugePages:" && in >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

double LoadAverage() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace setu::cli
