// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a process that runs.
//
//   EXPECT_LE(VitalsOf(pid).descriptors, before.descriptors);
#ifndef SETU_TESTS_SUPPORT_VITALS_H_
#define SETU_TESTS_SUPPORT_VITALS_H_

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace setu::test {

struct Vitals {
  long descriptors = 0, threads = 0, resident_kb = 0;
};

// Kilobytes of /proc/PID/status, such as VmRSS or VmHWM.
inline long MemoryKilobytes(pid_t pid, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field + ":")) return std::stol(line.substr(field.size() + 1));
  }
  return -1;
}

inline Vitals VitalsOf(pid_t pid) {
  const auto entries = [pid](const char* folder) {
    std::error_code gone;  // the process
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + folder, gone);
    return static_cast<long>(std::distance(begin(all), end(all)));
  };
  return {.descriptors = entries("/fd"),
          .threads = entries("/task"),
          .resident_kb = MemoryKilobytes(pid, "VmRSS")};
}

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_VITALS_H_
