// SPDX-License-Identifier: Apache-2.0
#include "services/decode/snapshot.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/worker/roofline_report.h"

namespace setu::decode {
namespace {

constexpr double kIdleShare = 0.005;  // of the time, in steps: what the line would call 0 %

}  // namespace

std::optional<std::string> FiguresLine(const Snapshot& before, const Snapshot& now) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  const double tokens = static_cast<double>(now.tokens - before.tokens);
  const double busy = std::chrono::duration<double>(now.busy - before.busy).count();
  if (now.running == 0 && busy < kIdleShare * seconds) return std::nullopt;
  const double steps = std::max<double>(now.steps - before.steps, 1.0);
  return absl::StrFormat(
      "%.0f tok/s, batch %.1f, busy %.0f %%, %d running, KV %.1f MB/s, %d/%d blocks free, "
      "%d preempted",
      tokens / seconds, tokens / steps, 100.0 * busy / seconds, now.running,
      (now.kv_bytes_received - before.kv_bytes_received) / seconds / 1e6,
      now.blocks_total - now.blocks_held - now.blocks_promised, now.blocks_total,
      now.preemptions - before.preemptions);
}

worker::v1::WatchLoadResponse Report(const Snapshot& snapshot) {
  worker::v1::WatchLoadResponse report;
  report.set_ready(true);  // loading has made tokens already
  report.set_draining(snapshot.draining);
  report.set_blocks_total(snapshot.blocks_total);
  report.set_blocks_free(snapshot.blocks_total - snapshot.blocks_held - snapshot.blocks_promised);
  report.set_running(snapshot.sequences);
  report.set_running_max(snapshot.sequences_max);
  report.set_queued(snapshot.prompts);
  report.set_queued_tokens(snapshot.prompt_tokens_left);
  report.set_tokens_per_second(snapshot.tokens_per_second);
  report.set_prompt_tokens_per_second(snapshot.prompt_tokens_per_second);
  report.set_kv_bytes(snapshot.kv_bytes_received);
  report.set_prefix_tokens_asked(snapshot.prefix_tokens_asked);
  report.set_prefix_tokens_known(snapshot.prefix_tokens_known);
  *report.mutable_roofline() = worker::ToProto(snapshot.roofline);
  return report;
}

}  // namespace setu::decode
