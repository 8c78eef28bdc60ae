// SPDX-License-Identifier: Apache-2.0
#include "services/cli/top_screen.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace setu::cli {
namespace {

constexpr char kHead[] =
    "worker        limit            memory  compute    tok/s     batch    KV  queue    KV MB/s   "
    "link\n";

const v1::ClusterWorker* Find(const v1::GetClusterResponse* cluster, const std::string& name) {
  if (cluster == nullptr) return nullptr;
  for (const v1::ClusterWorker& worker : cluster->workers()) {
    if (worker.name() == name) return &worker;
  }
  return nullptr;
}

// A worker that started anew counts from 0 again: its rate is not known.
std::string TransferRate(const v1::ClusterWorker& now, const v1::ClusterWorker* before,
                         double seconds) {
  if (before == nullptr || seconds <= 0 || now.kv_bytes() < before->kv_bytes()) return "-";
  const auto bytes = static_cast<double>(now.kv_bytes() - before->kv_bytes());
  return absl::StrFormat("%.1f", 1e-6 * bytes / seconds);
}

std::string Megabytes(double bytes) {
  return bytes > 0 ? absl::StrFormat("%.0f", 1e-6 * bytes) : "-";
}

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100.0 * share); }

}  // namespace

std::string TopScreen(const v1::GetClusterResponse& now, const v1::GetClusterResponse* before,
                      double seconds) {
  std::string screen = absl::StrFormat("%s, %s: %d running, %d of them queued\n\n", now.model(),
                                       now.numerics().empty() ? "no usable worker" : now.numerics(),
                                       now.running(), now.queued());
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
    absl::StrAppendFormat(&screen, "%-13s %-15s %7s%s %7s %8.0f %9s %5s %6s %10s %6s\n", w.name(),
                          limit.empty() ? "-" : limit, Percent(w.bandwidth_share()),
                          w.cache_resident() ? "*" : " ", Percent(w.arithmetic_share()),
                          w.tokens_per_second(), absl::StrCat(w.running(), "/", w.running_max()),
                          Percent(held), w.queued() == 0 ? "-" : absl::StrCat(w.queued_tokens()),
                          TransferRate(w, Find(before, w.name()), seconds),
                          Megabytes(w.link_bytes_per_second()));
  }
  absl::StrAppend(&screen, "\nmemory, compute: share of what the machine can do, while in steps",
                  cached ? "; * of the cache, where the weights stay" : "",
                  "\nbatch: running/places; KV: pool in use or promised; queue: prompt tokens\n"
                  "KV MB/s: sent or received now; link: most that one transfer reached\n");
  return screen;
}

}  // namespace setu::cli
