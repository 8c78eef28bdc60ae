// SPDX-License-Identifier: Apache-2.0
// Which workers there are, which of them may be paired, and how they stand. Addresses come from a
// static list or from DNS names resolved again and again; each is watched by a WorkerClient. An
// address that goes missing gets no new work; streams to it live on. There is no registry.
//
//   WorkerDirectory directory(loop, channels, logger, {.prefill = {"dns:///prefill:50052"}, ...},
//                             [&] { dispatcher.Kick(); });
//   for (const auto& worker : directory.Usable(worker::v1::ROLE_DECODE)) ...
#ifndef SETU_SERVICES_ROUTER_WORKER_DIRECTORY_H_
#define SETU_SERVICES_ROUTER_WORKER_DIRECTORY_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/logging/logger.h"
#include "common/rpc/channel_factory.h"
#include "common/rpc/event_loop.h"
#include "services/router/placement.h"
#include "services/router/resolver.h"
#include "services/router/worker.h"
#include "services/router/worker_client.h"

namespace setu::router {

struct DirectoryOptions {
  std::vector<std::string> prefill;  // addresses and names
  std::vector<std::string> decode;
  Duration resolve_interval = std::chrono::seconds(2);
  Resolver::Lookup lookup = LookUp;
};

// Workers of both roles that may get new work; `fit` numbers the groups that may be paired.
struct Workers {
  struct Entry {
    std::shared_ptr<Worker> worker;
    size_t fit = 0;
  };
  std::vector<Entry> prefill;
  std::vector<Entry> decode;

  bool HasPair() const;
};

class WorkerDirectory {
 public:
  // On the loop's thread, as all of it and its end. `changed` runs after every change.
  WorkerDirectory(rpc::EventLoop& loop, rpc::ChannelFactory& channels, Logger& logger,
                  const DirectoryOptions& options, std::function<void()> changed);
  ~WorkerDirectory();

  // Ready, in sight and not draining; ascending by address.
  Workers Usable() const;
  // Why HasPair() is false: FAILED_PRECONDITION names two workers that do not fit and what differs,
  // UNAVAILABLE says which kind is missing.
  absl::Status NoPair() const;
  // No new work for a while: it failed or refused just now.
  void Avoid(Worker& worker, Duration length);
  // Tokens that the roomiest decode worker in sight can hold.
  std::optional<int32_t> PoolTokens() const;

 private:
  struct Watched {
    std::unique_ptr<WorkerClient> client;
    std::shared_ptr<Worker> worker;  // null: not in sight
    bool missed = false;             // and the log says so
  };
  struct Pool {
    std::map<std::string, std::vector<std::string>> found;  // by list entry
    std::map<std::string, Watched> watched;                 // by address
  };

  void Configure(worker::v1::Role role, const std::vector<std::string>& list,
                 std::vector<std::string>& names);
  void Found(const std::string& name, std::vector<std::string> addresses);
  void Reconcile(worker::v1::Role role);
  void Seen(worker::v1::Role role, const std::string& address,
            const worker::v1::DescribeResponse& description,
            const worker::v1::WatchLoadResponse& load);
  void Lost(worker::v1::Role role, const std::string& address, const absl::Status& why);
  std::vector<std::shared_ptr<Worker>> Usable(worker::v1::Role role) const;

  rpc::EventLoop& loop_;
  rpc::ChannelFactory& channels_;
  Logger& logger_;
  const std::function<void()> changed_;
  std::map<worker::v1::Role, Pool> pools_;
  std::shared_ptr<WorkerDirectory*> alive_;  // what comes later finds out that we are gone
  std::unique_ptr<Resolver> resolver_;
};

// What placement needs to know of a worker.
WorkerView ViewOf(const Workers::Entry& entry, TimePoint now);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_WORKER_DIRECTORY_H_
