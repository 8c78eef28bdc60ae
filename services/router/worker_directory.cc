// SPDX-License-Identifier: Apache-2.0
#include "services/router/worker_directory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace setu::router {
namespace {

using worker::v1::DescribeResponse;
using worker::v1::Role;
using worker::v1::WatchLoadResponse;

// Numbers workers by the first one that they fit.
std::vector<Workers::Entry> Numbered(const std::vector<std::shared_ptr<Worker>>& workers,
                                     wire::Mixing mixing,
                                     std::vector<std::shared_ptr<Worker>>& groups) {
  std::vector<Workers::Entry> out;
  for (const std::shared_ptr<Worker>& worker : workers) {
    auto fits = [&](const std::shared_ptr<Worker>& group) {
      return Difference(*group, *worker, mixing).empty();
    };
    auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end()) group = groups.insert(groups.end(), worker);
    out.push_back({worker, static_cast<size_t>(group - groups.begin())});
  }
  return out;
}

// Why a worker is out of reach may read differently at each try; that is no change.
std::string WhatCounts(const Standing& standing) {
  const bool misfit = standing.state == WorkerState::kMisfit;
  return absl::StrCat(static_cast<int>(standing.state), misfit ? standing.why : "");
}

}  // namespace

bool Workers::HasPair() const {
  const auto computes = [](const Entry& entry) {
    return entry.worker->load.prompt_tokens_per_second() > 0;
  };
  if (local_prefill && std::any_of(decode.begin(), decode.end(), computes)) return true;
  std::set<size_t> fits;
  for (const Entry& entry : prefill) fits.insert(entry.fit);
  return std::any_of(decode.begin(), decode.end(),
                     [&](const Entry& entry) { return fits.contains(entry.fit); });
}

WorkerView ViewOf(const Workers::Entry& entry, TimePoint now) {
  const Worker& worker = *entry.worker;
  WorkerView view;
  view.fit = entry.fit;
  view.avoid = now < worker.full_until || !worker.circuit.Admits(now);
  view.claimed = worker.claimed;
  const auto block_tokens = worker.description.fingerprint().kv_layout().block_tokens();
  view.block_tokens = static_cast<int32_t>(std::max(block_tokens, 1u));
  view.grant_output_tokens = worker.description.grant_output_tokens();
  view.resume_watermark = worker.description.resume_watermark();
  view.blocks_total = worker.load.blocks_total();
  view.blocks_free = worker.load.blocks_free();
  view.running = static_cast<int32_t>(worker.load.running());
  view.running_max = static_cast<int32_t>(worker.load.running_max());
  view.queued = static_cast<int32_t>(worker.load.queued());
  view.queued_tokens = worker.load.queued_tokens();
  view.tokens_per_second = worker.load.tokens_per_second();
  view.link_bytes_per_second = worker.load.roofline().link_bytes_per_second();
  view.prompt_tokens_per_second = worker.load.prompt_tokens_per_second();
  const worker::v1::KvLayout& layout = worker.description.fingerprint().kv_layout();
  view.block_bytes = int64_t{2} * layout.block_tokens() * layout.layers() * layout.kv_heads() *
                     layout.head_dim() * layout.value_bytes();
  return view;
}

WorkerDirectory::WorkerDirectory(rpc::EventLoop& loop, WorkerCalls& calls, Logger& logger,
                                 const DirectoryOptions& options, uint64_t tokenizer,
                                 std::function<void()> changed, std::function<void()> reported)
    : loop_(loop),
      calls_(calls),
      logger_(logger),
      tokenizer_(tokenizer),
      local_prefill_(options.local_prefill),
      mixing_(options.allow_mixed_numerics ? wire::Mixing::kAllowed : wire::Mixing::kRefused),
      report_timeout_(options.report_timeout),
      patient_until_(loop.clock().Now() + kPatience),
      circuit_(options.circuit),
      seed_(options.seed),
      changed_(std::move(changed)),
      reported_(std::move(reported)),
      alive_(std::make_shared<WorkerDirectory*>(this)) {
  std::vector<std::string> names;
  Configure(worker::v1::ROLE_PREFILL, options.prefill, names);
  Configure(worker::v1::ROLE_DECODE, options.decode, names);
  auto found = [&loop, alive = std::weak_ptr(alive_)](
                   const std::string& name, absl::StatusOr<std::vector<std::string>> addresses) {
    loop.PostCompletion([alive, name, addresses = std::move(addresses)] {
      if (auto self = alive.lock()) (*self)->Found(name, addresses);
    });
  };
  resolver_ = std::make_unique<Resolver>(std::move(names), options.resolve_interval, options.lookup,
                                         std::move(found));
  loop_.At(patient_until_, [alive = std::weak_ptr(alive_)] {
    if (auto self = alive.lock()) (*self)->Review();
  });
}

WorkerDirectory::~WorkerDirectory() = default;

void WorkerDirectory::Configure(Role role, const std::vector<std::string>& list,
                                std::vector<std::string>& names) {
  Pool& pool = pools_[role];
  for (const std::string& entry : list) {
    if (NeedsLookup(entry)) {
      pool.listed[entry] = {};
      names.push_back(entry);
    } else {
      pool.listed[entry].addresses = {entry};
    }
  }
  Reconcile(role);
}

// A lookup that failed takes nothing away: what was found before holds.
void WorkerDirectory::Found(const std::string& name,
                            const absl::StatusOr<std::vector<std::string>>& addresses) {
  for (auto& [role, pool] : pools_) {
    auto entry = pool.listed.find(name);
    if (entry == pool.listed.end()) continue;
    Listed& listed = entry->second;
    const bool changed = addresses.ok() && listed.addresses != *addresses;
    if (changed) listed.addresses = *addresses;
    TellOf(role, name, listed, addresses.status());
    if (changed) Reconcile(role);
  }
}

void WorkerDirectory::TellOf(Role role, const std::string& name, Listed& listed,
                             const absl::Status& lookup) {
  const TimePoint now = loop_.clock().Now();
  const std::string which =
      absl::StrCat(listed.addresses.size(), " addresses of ", RoleName(role), " workers");
  if (lookup.ok()) {
    const std::string state = absl::StrCat("found ", absl::StrJoin(listed.addresses, " "));
    const auto line = listed.lines.Next(now, state, absl::StrCat(name, " has ", which));
    if (line) logger_.Info(*line);
  } else if (const auto line = listed.lines.Next(
                 now, "failed",
                 absl::StrCat(lookup.message(), "; ", which, " were found before; see that --",
                              RoleName(role), " and the name service are right"))) {
    logger_.Warning(*line);
  }
}

// Watches what is listed, and nothing else.
void WorkerDirectory::Reconcile(Role role) {
  Pool& pool = pools_[role];
  std::set<std::string> wanted;
  for (const auto& [entry, listed] : pool.listed)
    wanted.insert(listed.addresses.begin(), listed.addresses.end());
  std::erase_if(pool.watched, [&](const auto& item) { return !wanted.contains(item.first); });
  for (const std::string& address : wanted) {
    Watched& watched = pool.watched[address];
    if (watched.client) continue;
    WorkerSight sight;
    sight.seen = [this, role, address](const DescribeResponse& description,
                                       const WatchLoadResponse& load) {
      return Seen(role, address, description, load);
    };
    sight.lost = [this, role, address](const absl::Status& why) { Lost(role, address, why); };
    watched.client =
        std::make_unique<WorkerClient>(loop_, calls_, address, report_timeout_, std::move(sight));
  }
  loop_.PostCompletion([alive = std::weak_ptr(alive_)] {
    if (auto self = alive.lock()) (*self)->Review();
  });
}

bool WorkerDirectory::Seen(Role role, const std::string& address,
                           const DescribeResponse& description, const WatchLoadResponse& load) {
  Watched& watched = pools_[role].watched[address];
  std::shared_ptr<Worker>& worker = watched.worker;
  const bool is_new = !worker || worker->description.incarnation() != description.incarnation();
  if (is_new) {
    worker = std::make_shared<Worker>();
    worker->address = address;
    worker->description = description;
    worker->circuit =
        Circuit(circuit_, seed_ + std::hash<std::string>()(description.incarnation()));
    watched.prefixes = prefixes_.Join();
    worker->prefix_slot = watched.prefixes.slot();
  }
  const bool stands_as_before =
      !is_new && worker->load.ready() == load.ready() && worker->load.draining() == load.draining();
  worker->load = load;
  worker->load.clear_prefixes();
  watched.seen = true;
  const bool whole = !load.has_prefixes() || watched.prefixes.Apply(load.prefixes());
  if (stands_as_before) {
    TellOf(role, address, watched);
    reported_();
  } else {
    Review();
  }
  return whole;
}

void WorkerDirectory::Lost(Role role, const std::string& address, const absl::Status& why) {
  Watched& watched = pools_[role].watched[address];
  const bool stands_as_before = !watched.worker && !watched.lost.empty();
  watched.worker = nullptr;
  watched.prefixes = {};
  watched.lost = absl::StrCat(absl::StatusCodeToString(why.code()), ": ", why.message());
  if (!stands_as_before) return Review();
  TellOf(role, address, watched);
}

// Looks at all of them anew: one that comes or goes may change how others stand.
void WorkerDirectory::Review() {
  for (auto& [role, pool] : pools_) {
    for (auto& [address, watched] : pool.watched) {
      watched.standing =
          watched.worker ? Alone(*watched.worker, role, tokenizer_) : Unseen(watched);
    }
  }
  const Workers fitting = Group();
  SetApartUnpaired(worker::v1::ROLE_PREFILL, fitting.prefill, fitting.decode);
  SetApartUnpaired(worker::v1::ROLE_DECODE, fitting.decode, fitting.prefill);
  usable_ = Group();
  for (auto& [role, pool] : pools_) {
    for (auto& [address, watched] : pool.watched) TellOf(role, address, watched);
  }
  changed_();
}

Standing WorkerDirectory::Unseen(const Watched& watched) const {
  const bool awaited = !watched.seen && loop_.clock().Now() < patient_until_;
  return {awaited ? WorkerState::kAwaited : WorkerState::kUnreachable, watched.lost};
}

// While the other role has workers, one that fits none of them is a misfit, at each of its
// addresses.
void WorkerDirectory::SetApartUnpaired(Role role, const std::vector<Workers::Entry>& workers,
                                       const std::vector<Workers::Entry>& others) {
  if (others.empty()) return;
  for (const auto& [worker, fit] : workers) {
    const auto fits = [fit = fit](const Workers::Entry& other) { return other.fit == fit; };
    if (std::any_of(others.begin(), others.end(), fits)) continue;
    for (auto& [address, watched] : pools_[role].watched) {
      const bool same = watched.worker && watched.worker->description.incarnation() ==
                                              worker->description.incarnation();
      if (same) watched.standing = Unpaired(*watched.worker, *others.front().worker, mixing_);
    }
  }
}

void WorkerDirectory::TellOf(Role role, const std::string& address, Watched& watched) {
  const Standing& standing = watched.standing;
  const bool not_tried_yet = !watched.worker && watched.lost.empty();
  if (not_tried_yet) return;
  const std::string line = LineAbout(role, address, standing);
  const auto news = watched.lines.Next(loop_.clock().Now(), WhatCounts(standing), line);
  if (news) logger_.Write(LevelOf(standing.state), *news);
}

std::vector<std::shared_ptr<Worker>> WorkerDirectory::Usable(Role role) const {
  std::vector<std::shared_ptr<Worker>> out;
  std::set<std::string> incarnations;  // one worker may be listed under two addresses
  for (const auto& [address, watched] : pools_.at(role).watched) {
    if (watched.standing.state != WorkerState::kUsable) continue;
    const std::string& incarnation = watched.worker->description.incarnation();
    if (incarnations.insert(incarnation).second) out.push_back(watched.worker);
  }
  return out;
}

Workers WorkerDirectory::Group() const {
  std::vector<std::shared_ptr<Worker>> groups;
  Workers workers;
  workers.prefill = Numbered(Usable(worker::v1::ROLE_PREFILL), mixing_, groups);
  workers.decode = Numbered(Usable(worker::v1::ROLE_DECODE), mixing_, groups);
  workers.local_prefill = local_prefill_;
  return workers;
}

UnusableWorkers WorkerDirectory::Unusable(Role role) const {
  UnusableWorkers unusable;
  for (const auto& [address, watched] : pools_.at(role).watched) {
    unusable.Count(watched.standing.state);
  }
  for (const auto& [entry, listed] : pools_.at(role).listed) {
    if (listed.addresses.empty()) unusable.Count(WorkerState::kUnreachable);
  }
  return unusable;
}

std::vector<WorkerDirectory::Listing> WorkerDirectory::All() const {
  std::vector<Listing> all;
  const TimePoint now = loop_.clock().Now();
  for (const auto& [role, pool] : pools_) {
    for (const auto& [address, watched] : pool.watched) {
      all.push_back({role, watched.standing.state, watched.worker});
      if (watched.worker) all.back().circuit = watched.worker->circuit.state(now);
    }
  }
  return all;
}

absl::Status WorkerDirectory::NoPair() const {
  for (const auto& [role, pool] : pools_) {
    if (!Usable(role).empty()) continue;
    const UnusableWorkers unusable = Unusable(role);
    if (unusable.misfit > 0 && unusable.misfit == unusable.total()) {
      const auto& [address, watched] = *pool.watched.begin();
      return absl::FailedPreconditionError(LineAbout(role, address, watched.standing));
    }
    return absl::UnavailableError(
        absl::StrCat("no ", RoleName(role), " worker is usable: ", unusable.Text()));
  }
  return absl::OkStatus();
}

std::optional<int32_t> WorkerDirectory::PoolTokens() const {
  std::optional<int32_t> most;
  for (const std::shared_ptr<Worker>& worker : Usable(worker::v1::ROLE_DECODE)) {
    const auto tokens = static_cast<int32_t>(worker->description.pool_tokens());
    most = std::max(most.value_or(0), tokens);
  }
  return most;
}

}  // namespace setu::router
