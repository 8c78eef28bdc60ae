// SPDX-License-Identifier: Apache-2.0
#include "services/router/snapshot.h"

#include <chrono>

#include "absl/strings/str_format.h"

namespace setu::router {

std::string FiguresLine(const RouterSnapshot& before, const RouterSnapshot& now, Duration between) {
  const double seconds = std::chrono::duration<double>(between).count();
  return absl::StrFormat(
      "running=%d queued=%d finished=%.1f/s failed=%d refused=%d resumes=%d retries=%d "
      "workers=%d+%d",
      now.running, now.queue_length, static_cast<double>(now.finished - before.finished) / seconds,
      now.failed - before.failed, now.refused_full - before.refused_full,
      now.resumes - before.resumes, now.retries - before.retries, now.prefill_workers,
      now.decode_workers);
}

}  // namespace setu::router
