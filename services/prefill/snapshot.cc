// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/snapshot.h"

#include "absl/strings/str_format.h"
#include "common/worker/roofline_report.h"

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

worker::v1::WatchLoadResponse Report(const Snapshot& snapshot, int32_t running_max) {
  worker::v1::WatchLoadResponse report;
  report.set_ready(true);  // loading has already made a token
  report.set_draining(snapshot.draining);
  report.set_blocks_total(snapshot.blocks_total);
  report.set_blocks_free(snapshot.blocks_free);
  report.set_running(snapshot.running);
  report.set_running_max(running_max);
  report.set_queued(snapshot.running + snapshot.queued);
  report.set_queued_tokens(snapshot.queued_tokens);
  report.set_tokens_per_second(snapshot.tokens_per_second);
  report.set_kv_bytes(snapshot.kv_bytes);
  report.set_prefix_tokens_asked(snapshot.prefix_tokens_asked);
  report.set_prefix_tokens_known(snapshot.prefix_tokens_known);
  *report.mutable_roofline() = worker::ToProto(snapshot.roofline);
  return report;
}

}  // namespace setu::prefill
