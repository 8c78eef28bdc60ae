// SPDX-License-Identifier: Apache-2.0
// What a process holds of the memory that carries KV between processes.
#ifndef SETU_TESTS_SUPPORT_HELD_MEMORY_H_
#define SETU_TESTS_SUPPORT_HELD_MEMORY_H_

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace setu::test {

// Descriptors and mappings: its owner has one of each, who reads it a mapping.
inline size_t HeldMemories(pid_t process = getpid()) {
  constexpr char kName[] = "memfd:setu-kv";
  const std::string folder = "/proc/" + std::to_string(process);
  size_t held = 0;
  for (const auto& fd : std::filesystem::directory_iterator(folder + "/fd")) {
    std::error_code gone;  // the one of this loop
    const std::string target = std::filesystem::read_symlink(fd, gone).string();
    if (target.find(kName) != std::string::npos) ++held;
  }
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(kName) != std::string::npos) ++held;
  }
  return held;
}

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_HELD_MEMORY_H_
