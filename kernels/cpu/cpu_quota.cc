// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace setu::kernels {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// "max 100000" has no number in front and so no limit, as has v1's quota of -1.
double Share(std::istream& quota, std::istream& period) {
  double allowed = 0, of = 0;
  if (!(quota >> allowed) || !(period >> of) || allowed <= 0 || of <= 0) return kNoLimit;
  return allowed / of;
}

double QuotaOf(const std::string& folder) {
  std::ifstream v2(folder + "/cpu.max");
  std::ifstream quota(folder + "/cpu.cfs_quota_us"), period(folder + "/cpu.cfs_period_us");
  return std::min(Share(v2, v2), Share(quota, period));
}

// The group and its parents up to the mount.
double QuotaAlong(const std::string& mount, std::string group) {
  double least = QuotaOf(mount);
  for (; group.size() > 1; group.resize(group.rfind('/'))) {
    least = std::min(least, QuotaOf(mount + group));
  }
  return least;
}

}  // namespace

double CgroupCpuQuota(const std::string& root) {
  double least = kNoLimit;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // id:controllers:/path
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::istringstream names(controllers);
    bool cpu = controllers.empty();  // v2 has one group for all controllers
    for (std::string name; std::getline(names, name, ',');) cpu = cpu || name == "cpu";
    if (!cpu) continue;
    const std::string folders[] = {"", "/cpu", "/" + controllers};
    for (const std::string& folder : folders) {
      least =
          std::min(least, QuotaAlong(root + "/sys/fs/cgroup" + folder, line.substr(second + 1)));
    }
  }
  return least;
}

int ThreadsWithin(int cpus, double quota) {
  return std::max(1, static_cast<int>(std::min(static_cast<double>(cpus), quota)));
}

}  // namespace setu::kernels
