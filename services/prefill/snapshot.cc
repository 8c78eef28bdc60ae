// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/snapshot.h"

#include "absl/strings/str_format.h"

namespace setu::prefill {
namespace {

constexpr double kIdleShare = 0.005;  // of the time, in steps: what the line would call 0 %

}  // namespace

std::optional<std::string> FiguresLine(const Snapshot& before, const Snapshot& now) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  const double busy = std::chrono::duration<double>(now.busy - before.busy).count();
  if (now.running == 0 && busy < kIdleShare * seconds) return std::nullopt;
  return absl::StrFormat(
      "%.0f tok/s, busy %.0f %%, %d running, %d queued (%d tok), KV %.1f MB/s, "
      "%d/%d blocks free",
      (now.tokens - before.tokens) / seconds, 100.0 * busy / seconds, now.running, now.queued,
      now.queued_tokens, (now.kv_bytes - before.kv_bytes) / seconds / 1e6, now.blocks_free,
      now.blocks_total);
}

}  // namespace setu::prefill
