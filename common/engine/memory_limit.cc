// SPDX-License-Identifier: Apache-2.0
#include "common/engine/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace setu::engine {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// A file that holds one number; "max" (v2) and numbers beyond int64 are no limit.
int64_t Limit(const std::filesystem::path& file) {
  std::string text;
  std::ifstream(file) >> text;
  int64_t bytes = 0;
  return absl::SimpleAtoi(text, &bytes) && bytes > 0 ? bytes : kNone;
}

// The limit of `cgroup` and of every one above it, up to the hierarchy's mount. In a container the
// path of /proc/self/cgroup may be the host's; then only the mount itself has the file.
int64_t HierarchyLimit(const std::filesystem::path& mount, const std::filesystem::path& cgroup,
                       const char* file) {
  int64_t limit = Limit(mount / file);
  std::filesystem::path path = mount;
  for (const std::filesystem::path& part : cgroup.relative_path()) {
    if (part == "..") break;
    path /= part;
    limit = std::min(limit, Limit(path / file));
  }
  return limit;
}

int64_t CgroupLimit(const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  int64_t limit = kNone;
  std::ifstream cgroups(root / "proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {  // hierarchy:controllers:path
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      limit = std::min(limit, HierarchyLimit(mount, fields[2], "memory.max"));
    } else if (absl::StrContains("," + fields[1] + ",", ",memory,")) {
      limit = std::min(limit, HierarchyLimit(mount / "memory", fields[2], "memory.limit_in_bytes"));
    }
  }
  return limit;
}

int64_t MachineMemory(const std::filesystem::path& root) {
  std::ifstream meminfo(root / "proc/meminfo");
  std::string key;
  int64_t kibibytes = 0;
  while (meminfo >> key >> kibibytes) {
    if (key == "MemTotal:") return kibibytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kNone;
}

}  // namespace

int64_t MemoryLimitBytes(const std::filesystem::path& root) {
  return std::min(MachineMemory(root), CgroupLimit(root));
}

}  // namespace setu::engine
