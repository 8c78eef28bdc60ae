// SPDX-License-Identifier: Apache-2.0
#include "services/router/worker_directory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/convert.h"

namespace setu::router {
namespace {

using worker::v1::DescribeResponse;
using worker::v1::Role;
using worker::v1::WatchLoadResponse;

const char* Name(Role role) { return role == worker::v1::ROLE_PREFILL ? "prefill" : "decode"; }

// Empty where both may be paired.
std::string Misfit(const Worker& a, const Worker& b) {
  if (a.description.wire_version_max() < b.description.wire_version_min() ||
      b.description.wire_version_max() < a.description.wire_version_min()) {
    return absl::StrCat("they speak wire versions ", a.description.wire_version_min(), " to ",
                        a.description.wire_version_max(), " and ", b.description.wire_version_min(),
                        " to ", b.description.wire_version_max());
  }
  return wire::Difference(a.description.fingerprint(), b.description.fingerprint());
}

// Numbers workers by the first one that they fit.
std::vector<Workers::Entry> Group(const std::vector<std::shared_ptr<Worker>>& workers,
                                  std::vector<std::shared_ptr<Worker>>& groups) {
  std::vector<Workers::Entry> out;
  for (const std::shared_ptr<Worker>& worker : workers) {
    auto fits = [&](const std::shared_ptr<Worker>& group) {
      return Misfit(*group, *worker).empty();
    };
    auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end()) group = groups.insert(groups.end(), worker);
    out.push_back({worker, static_cast<size_t>(group - groups.begin())});
  }
  return out;
}

}  // namespace

bool Workers::HasPair() const {
  std::set<size_t> fits;
  for (const Entry& entry : prefill) fits.insert(entry.fit);
  return std::any_of(decode.begin(), decode.end(),
                     [&](const Entry& entry) { return fits.contains(entry.fit); });
}

WorkerView ViewOf(const Workers::Entry& entry, TimePoint now) {
  const Worker& worker = *entry.worker;
  WorkerView view;
  view.fit = entry.fit;
  view.avoid = now < worker.avoid_until;
  view.claimed = worker.claimed;
  const auto block_tokens = worker.description.fingerprint().kv_layout().block_tokens();
  view.block_tokens = static_cast<int32_t>(std::max(block_tokens, 1u));
  view.grant_output_tokens = worker.description.grant_output_tokens();
  view.blocks_total = worker.load.blocks_total();
  view.blocks_free = worker.load.blocks_free();
  view.running = static_cast<int32_t>(worker.load.running());
  view.running_max = static_cast<int32_t>(worker.load.running_max());
  view.queued = static_cast<int32_t>(worker.load.queued());
  view.queued_tokens = worker.load.queued_tokens();
  view.tokens_per_second = worker.load.tokens_per_second();
  return view;
}

WorkerDirectory::WorkerDirectory(rpc::EventLoop& loop, rpc::ChannelFactory& channels,
                                 Logger& logger, const DirectoryOptions& options,
                                 std::function<void()> changed)
    : loop_(loop),
      channels_(channels),
      logger_(logger),
      changed_(std::move(changed)),
      alive_(std::make_shared<WorkerDirectory*>(this)) {
  std::vector<std::string> names;
  Configure(worker::v1::ROLE_PREFILL, options.prefill, names);
  Configure(worker::v1::ROLE_DECODE, options.decode, names);
  auto found = [&loop, alive = std::weak_ptr(alive_)](const std::string& name,
                                                      std::vector<std::string> addresses) {
    loop.PostCompletion([alive, name, addresses = std::move(addresses)] {
      if (auto self = alive.lock()) (*self)->Found(name, addresses);
    });
  };
  resolver_ = std::make_unique<Resolver>(std::move(names), options.resolve_interval, options.lookup,
                                         std::move(found));
}

WorkerDirectory::~WorkerDirectory() = default;

void WorkerDirectory::Configure(Role role, const std::vector<std::string>& list,
                                std::vector<std::string>& names) {
  Pool& pool = pools_[role];
  for (const std::string& entry : list) {
    if (NeedsLookup(entry)) {
      pool.found[entry] = {};
      names.push_back(entry);
    } else {
      pool.found[entry] = {entry};
    }
  }
  Reconcile(role);
}

void WorkerDirectory::Found(const std::string& name, std::vector<std::string> addresses) {
  for (auto& [role, pool] : pools_) {
    auto entry = pool.found.find(name);
    if (entry == pool.found.end() || entry->second == addresses) continue;
    entry->second = addresses;
    Reconcile(role);
  }
}

// Watches what is listed, and nothing else.
void WorkerDirectory::Reconcile(Role role) {
  Pool& pool = pools_[role];
  std::set<std::string> listed;
  for (const auto& [entry, addresses] : pool.found)
    listed.insert(addresses.begin(), addresses.end());
  std::erase_if(pool.watched, [&](const auto& item) { return !listed.contains(item.first); });
  for (const std::string& address : listed) {
    Watched& watched = pool.watched[address];
    if (watched.client) continue;
    WorkerSight sight;
    sight.seen = [this, role, address](const DescribeResponse& description,
                                       const WatchLoadResponse& load) {
      Seen(role, address, description, load);
    };
    sight.lost = [this, role, address](const absl::Status& why) { Lost(role, address, why); };
    watched.client = std::make_unique<WorkerClient>(loop_, channels_, address, std::move(sight));
  }
  loop_.PostCompletion([alive = std::weak_ptr(alive_)] {
    if (auto self = alive.lock()) (*self)->changed_();
  });
}

void WorkerDirectory::Seen(Role role, const std::string& address,
                           const DescribeResponse& description, const WatchLoadResponse& load) {
  Watched& watched = pools_[role].watched[address];
  std::shared_ptr<Worker>& worker = watched.worker;
  watched.missed = false;
  if (!worker || worker->description.incarnation() != description.incarnation()) {
    worker = std::make_shared<Worker>();
    worker->address = address;
    worker->description = description;
    logger_.Info(absl::StrCat(Name(role), " worker ", address, " is in sight"));
    if (description.role() != role) {
      logger_.Error(absl::StrCat(address, " is listed as ", Name(role), " but is another kind"));
    }
  }
  worker->load = load;
  changed_();
}

void WorkerDirectory::Lost(Role role, const std::string& address, const absl::Status& why) {
  Watched& watched = pools_[role].watched[address];
  if (std::exchange(watched.missed, true)) return;
  const std::string who = absl::StrCat(Name(role), " worker ", address);
  if (!watched.worker)
    return logger_.Info(absl::StrCat(who, " is not in sight yet: ", why.message()));
  logger_.Warning(absl::StrCat(who, " is out of sight: ", why.message()));
  watched.worker = nullptr;
  changed_();
}

std::vector<std::shared_ptr<Worker>> WorkerDirectory::Usable(Role role) const {
  std::vector<std::shared_ptr<Worker>> out;
  std::set<std::string> incarnations;  // one worker may be listed under two addresses
  for (const auto& [address, watched] : pools_.at(role).watched) {
    const std::shared_ptr<Worker>& worker = watched.worker;
    if (!worker || worker->description.role() != role) continue;
    if (!worker->load.ready() || worker->load.draining()) continue;
    if (incarnations.insert(worker->description.incarnation()).second) out.push_back(worker);
  }
  return out;
}

Workers WorkerDirectory::Usable() const {
  std::vector<std::shared_ptr<Worker>> groups;
  Workers workers;
  workers.prefill = Group(Usable(worker::v1::ROLE_PREFILL), groups);
  workers.decode = Group(Usable(worker::v1::ROLE_DECODE), groups);
  return workers;
}

absl::Status WorkerDirectory::NoPair() const {
  for (Role role : {worker::v1::ROLE_PREFILL, worker::v1::ROLE_DECODE}) {
    if (!Usable(role).empty()) continue;
    return absl::UnavailableError(absl::StrCat("no ", Name(role), " worker is ready; ",
                                               pools_.at(role).watched.size(),
                                               " addresses are watched"));
  }
  const Worker& prefill = *Usable(worker::v1::ROLE_PREFILL).front();
  const Worker& decode = *Usable(worker::v1::ROLE_DECODE).front();
  return absl::FailedPreconditionError(absl::StrCat("prefill worker ", prefill.address,
                                                    " and decode worker ", decode.address,
                                                    " do not fit: ", Misfit(prefill, decode)));
}

void WorkerDirectory::Avoid(Worker& worker, Duration length) {
  worker.avoid_until = std::max(worker.avoid_until, loop_.clock().Now() + length);
  loop_.At(worker.avoid_until, [alive = std::weak_ptr(alive_)] {
    if (auto self = alive.lock()) (*self)->changed_();
  });
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
