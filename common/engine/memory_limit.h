// SPDX-License-Identifier: Apache-2.0
// How much memory this process may have: the machine's, or less where a cgroup (v1 or v2) says so.
#ifndef SETU_COMMON_ENGINE_MEMORY_LIMIT_H_
#define SETU_COMMON_ENGINE_MEMORY_LIMIT_H_

#include <cstdint>
#include <filesystem>

namespace setu::engine {

// Bytes: the smallest of MemTotal and the limits of the process's cgroup and all cgroups above it.
// Reads proc/ and sys/fs/cgroup/ under `root`; what cannot be read does not limit.
int64_t MemoryLimitBytes(const std::filesystem::path& root = "/");

}  // namespace setu::engine

#endif  // SETU_COMMON_ENGINE_MEMORY_LIMIT_H_
