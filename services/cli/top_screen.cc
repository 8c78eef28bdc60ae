// SPDX-License-Identifier: Apache-2.0
#include "services/cli/top_screen.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace setu::cli {
namespace {

constexpr char kPrefill[] = "prefill-", kDecode[] = "decode-";  // names of workers begin so

constexpr char kHead[] =
    "worker        limit            memory  compute    tok/s     batch    KV  hits  queue    "
    "KV MB/s   link\n";

const v1::ClusterWorker* Find(const v1::GetClusterResponse* cluster, const std::string& name) {
  if (cluster == nullptr) return nullptr;
  for (const v1::ClusterWorker& worker : cluster->workers()) {
    if (worker.name() == name) return &worker;
  }
  return nullptr;
}

// A worker that started anew counts from 0 again: its rate is not known.
std::optional<double> TransferRate(const v1::ClusterWorker& now, const v1::ClusterWorker* before,
                                   double seconds) {
  if (before == nullptr || seconds <= 0 || now.kv_bytes() < before->kv_bytes()) return std::nullopt;
  return static_cast<double>(now.kv_bytes() - before->kv_bytes()) / seconds;
}

std::string MegabytesPerSecond(std::optional<double> bytes_per_second) {
  return bytes_per_second ? absl::StrFormat("%.1f", 1e-6 * *bytes_per_second) : "-";
}

std::string Megabytes(double bytes) {
  return bytes > 0 ? absl::StrFormat("%.0f", 1e-6 * bytes) : "-";
}

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100.0 * share); }

std::string HitRate(uint64_t known, uint64_t asked) {
  return asked == 0 ? "-" : Percent(static_cast<double>(known) / static_cast<double>(asked));
}

// Of all workers of a role.
std::string HitRate(const v1::GetClusterResponse& cluster, absl::string_view role) {
  uint64_t known = 0, asked = 0;
  for (const v1::ClusterWorker& worker : cluster.workers()) {
    if (!absl::StartsWith(worker.name(), role)) continue;
    known += worker.prefix_tokens_known();
    asked += worker.prefix_tokens_asked();
  }
  return HitRate(known, asked);
}

// Of all senders whose rate is known.
std::optional<double> TransferRate(const v1::GetClusterResponse& now,
                                   const v1::GetClusterResponse* before, double seconds) {
  std::optional<double> sum;
  for (const v1::ClusterWorker& worker : now.workers()) {
    if (!absl::StartsWith(worker.name(), kPrefill)) continue;
    const auto rate = TransferRate(worker, Find(before, worker.name()), seconds);
    if (rate) sum = sum.value_or(0.0) + *rate;
  }
  return sum;
}

std::string Totals(const v1::GetClusterResponse& now, const v1::GetClusterResponse* before,
                   double seconds) {
  const v1::Decisions& d = now.decisions();
  return absl::StrFormat(
      "since the start: %d finished, %d failed, %d cancelled, %d refused; "
      "%d resumes, %d retries, %d local prefills\n"
      "prefix hits: prefill %s, decode %s; KV sent now: %s MB/s\n",
      d.finished(), d.failed(), d.cancelled(), d.refused(), d.resumes(), d.retries(),
      d.local_prefills(), HitRate(now, kPrefill), HitRate(now, kDecode),
      MegabytesPerSecond(TransferRate(now, before, seconds)));
}

}  // namespace

std::string TopScreen(const v1::GetClusterResponse& now, const v1::GetClusterResponse* before,
                      double seconds) {
  std::string screen = absl::StrFormat("%s, %s: %d running, %d of them queued\n", now.model(),
                                       now.numerics().empty() ? "no usable worker" : now.numerics(),
                                       now.running(), now.queued());
  absl::StrAppend(&screen, Totals(now, before, seconds), "\n");
  bool cached = false;
  absl::StrAppend(&screen, kHead);
  for (const v1::ClusterWorker& w : now.workers()) {
    const bool usable = w.state() == "usable";
    const std::string limit = usable ? w.limit() : w.state();
    if (w.blocks_total() == 0) {
      absl::StrAppendFormat(&screen, "%-13s %s\n", w.name(), limit);
      continue;
    }
    cached = cached || w.cache_resident();
    const double held = 1.0 - static_cast<double>(w.blocks_free()) / w.blocks_total();
    absl::StrAppendFormat(&screen, "%-13s %-15s %7s%s %7s %8.0f %9s %5s %5s %6s %10s %6s\n",
                          w.name(), limit.empty() ? "-" : limit, Percent(w.bandwidth_share()),
                          w.cache_resident() ? "*" : " ", Percent(w.arithmetic_share()),
                          w.tokens_per_second(), absl::StrCat(w.running(), "/", w.running_max()),
                          Percent(held), HitRate(w.prefix_tokens_known(), w.prefix_tokens_asked()),
                          w.queued() == 0 ? "-" : absl::StrCat(w.queued_tokens()),
                          MegabytesPerSecond(TransferRate(w, Find(before, w.name()), seconds)),
                          Megabytes(w.link_bytes_per_second()));
  }
  absl::StrAppend(
      &screen, "\nmemory, compute: share of what the machine can do, while in steps",
      cached ? "; * of the cache, where the weights stay" : "",
      "\nbatch: running/places; KV: pool in use or promised; queue: prompt tokens\n"
      "hits: prompt tokens whose KV was here: not computed (prefill), not sent (decode)\n"
      "KV MB/s: sent or received now; link: most that one transfer reached\n");
  return screen;
}

}  // namespace setu::cli
