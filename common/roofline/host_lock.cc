// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/host_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace setu::roofline {
namespace {

constexpr int kLookAgainMs = 2;

// Another user's file in a shared folder opens only without O_CREAT; reading suffices for flock.
int Open(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
  const int file = open(path.c_str(), kFlags | O_CREAT, 0644);
  return file >= 0 ? file : open(path.c_str(), kFlags);
}

}  // namespace

std::string ProbeLockPath() {
  std::error_code ignored;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::filesystem::path folder =
      runtime != nullptr && std::filesystem::is_directory(runtime, ignored)
          ? std::filesystem::path(runtime)
          : std::filesystem::temp_directory_path(ignored);
  return folder / "setu-probe.lock";
}

HostLock::HostLock(const std::string& path, Duration wait) : file_(Open(path)) {
  if (file_ < 0) return;
  const SteadyClock clock;
  const TimePoint end = clock.Now() + wait;
  while (!(held_ = flock(file_, LOCK_EX | LOCK_NB) == 0) && clock.Now() < end) {
    poll(nullptr, 0, kLookAgainMs);  // flock knows no deadline
  }
}

HostLock::~HostLock() {
  if (file_ >= 0) close(file_);  // and with it the lock
}

}  // namespace setu::roofline
