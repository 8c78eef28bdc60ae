// SPDX-License-Identifier: Apache-2.0
// One at a time on this host: processes that probe the machine at once would each see half of it.
//
//   const HostLock lock(ProbeLockPath(), std::chrono::seconds(1));    // freed when it dies
//
// A lock that does not come within the wait, or whose file cannot be opened, is done without: the
// lock guards figures, not correctness. Containers with a /tmp of their own do not see each other.
#ifndef SETU_COMMON_ROOFLINE_HOST_LOCK_H_
#define SETU_COMMON_ROOFLINE_HOST_LOCK_H_

#include <string>

#include "common/base/clock.h"

namespace setu::roofline {

// In $XDG_RUNTIME_DIR, or else the folder for temporary files.
std::string ProbeLockPath();

class HostLock {
 public:
  HostLock(const std::string& path, Duration wait);
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

  bool held() const { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_HOST_LOCK_H_
