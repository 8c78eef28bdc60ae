// SPDX-License-Identifier: Apache-2.0
#include "services/router/snapshot.h"

#include <chrono>

#include "absl/strings/str_format.h"

namespace setu::router {

std::optional<std::string> FiguresLine(const RouterSnapshot& before, const RouterSnapshot& now,
                                       Duration between) {
  const auto all = [](const RouterSnapshot& s) {
    return s.refused_full + s.refused_late + s.refused_quota + s.refused_no_workers;
  };
  const uint64_t refused = all(now) - all(before);
  const bool ran = now.running > 0 || before.running > 0 || now.admitted != before.admitted;
  if (!ran && refused == 0) return std::nullopt;
  const double seconds = std::chrono::duration<double>(between).count();
  return absl::StrFormat(
      "%d running, %d queued, %.1f finished/s, %d failed, %d refused, %d resumes, %d retries, "
      "%d+%d workers",
      now.running, now.queue_length, static_cast<double>(now.finished - before.finished) / seconds,
      now.failed - before.failed, refused, now.resumes.total() - before.resumes.total(),
      now.retries - before.retries, now.prefill_workers, now.decode_workers);
}

}  // namespace setu::router
