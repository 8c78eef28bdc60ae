// SPDX-License-Identifier: Apache-2.0
// Which workers there are, which of them may be paired, and how they stand. Addresses come from a
// static list or from DNS names resolved again and again; each is watched by a WorkerClient. An
// address that goes missing gets no new work; streams to it live on. There is no registry. Each
// change of how a worker or a name stands is one line of the log.
//
//   WorkerDirectory directory(loop, calls, logger, {.prefill = {"dns:///prefill:50052"}, ...},
//                             tokenizer_digest, [&] { dispatcher.Kick(); });
//   for (const Workers::Entry& decode : directory.Usable().decode) ...
#ifndef SETU_SERVICES_ROUTER_WORKER_DIRECTORY_H_
#define SETU_SERVICES_ROUTER_WORKER_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/logging/logger.h"
#include "common/rpc/event_loop.h"
#include "services/router/change_lines.h"
#include "services/router/circuit.h"
#include "services/router/placement.h"
#include "services/router/prefix_index.h"
#include "services/router/resolver.h"
#include "services/router/standing.h"
#include "services/router/worker.h"
#include "services/router/worker_client.h"

namespace setu::router {

struct DirectoryOptions {
  std::vector<std::string> prefill;  // addresses and names
  std::vector<std::string> decode;
  bool local_prefill = false;  // decode workers may compute prompts, and serve without prefill ones
  bool allow_mixed_numerics = false;  // workers of two numeric paths may be paired, by their leave
  // Workers report at least once a second; one that does not for so long is out of sight.
  Duration report_timeout = std::chrono::seconds(3);
  Duration resolve_interval = std::chrono::seconds(2);
  Circuit::Times circuit;
  uint64_t seed = 0;  // of chance in circuits: other routers have another
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
  bool local_prefill = false;

  // Whether they can serve a prompt.
  bool HasPair() const;
};

class WorkerDirectory {
 public:
  // So long after the start, what was never in sight is awaited and not yet called unreachable.
  static constexpr Duration kPatience = std::chrono::seconds(30);

  // On the loop's thread, as all of it and its end. `tokenizer` is the router's own
  // engine::TokenizerDigest: a worker with another is a misfit. `changed` runs after every change
  // of who is usable, `reported` after a report that leaves that as it was.
  WorkerDirectory(rpc::EventLoop& loop, WorkerCalls& calls, Logger& logger,
                  const DirectoryOptions& options, uint64_t tokenizer,
                  std::function<void()> changed, std::function<void()> reported);
  ~WorkerDirectory();

  // Ready, in sight, not draining and fitting; ascending by address. Until the next change.
  const Workers& Usable() const { return usable_; }
  // All others. A name that was never resolved counts as one unreachable worker.
  UnusableWorkers Unusable(worker::v1::Role role) const;
  // Every address that is watched, and how it stands: prefill first, ascending by address.
  struct Listing {
    worker::v1::Role role = worker::v1::ROLE_UNSPECIFIED;
    WorkerState state = WorkerState::kUnreachable;
    std::shared_ptr<const Worker> worker;  // null: not in sight
    Circuit::State circuit = Circuit::State::kClosed;
  };
  std::vector<Listing> All() const;
  // Why HasPair() is false: FAILED_PRECONDITION where all workers of a kind are in sight and none
  // fits, with what differs; else UNAVAILABLE, with how those of the missing kind stand. OK where
  // there is a pair.
  absl::Status NoPair() const;
  const PrefixIndex& prefixes() const { return prefixes_; }
  // Tokens that the roomiest decode worker in sight can hold.
  std::optional<int32_t> PoolTokens() const;

 private:
  struct Listed {
    std::vector<std::string> addresses;
    ChangeLines lines;  // of a name
  };
  struct Watched {
    std::unique_ptr<WorkerClient> client;
    std::shared_ptr<Worker> worker;  // null: not in sight
    PrefixIndex::Member prefixes;    // of the worker
    bool seen = false;               // ever
    std::string lost;                // why it was not at the last try; empty before the first
    Standing standing;
    ChangeLines lines;
  };
  struct Pool {
    std::map<std::string, Listed> listed;    // by list entry
    std::map<std::string, Watched> watched;  // by address
  };

  void Configure(worker::v1::Role role, const std::vector<std::string>& list,
                 std::vector<std::string>& names);
  void Found(const std::string& name, const absl::StatusOr<std::vector<std::string>>& addresses);
  void TellOf(worker::v1::Role role, const std::string& name, Listed& listed,
              const absl::Status& lookup);
  void Reconcile(worker::v1::Role role);
  bool Seen(worker::v1::Role role, const std::string& address,
            const worker::v1::DescribeResponse& description,
            const worker::v1::WatchLoadResponse& load);
  void Lost(worker::v1::Role role, const std::string& address, const absl::Status& why);
  void Review();
  Standing Unseen(const Watched& watched) const;
  void SetApartUnpaired(worker::v1::Role role, const std::vector<Workers::Entry>& workers,
                        const std::vector<Workers::Entry>& others);
  void TellOf(worker::v1::Role role, const std::string& address, Watched& watched);
  std::vector<std::shared_ptr<Worker>> Usable(worker::v1::Role role) const;
  Workers Group() const;

  rpc::EventLoop& loop_;
  WorkerCalls& calls_;
  Logger& logger_;
  const uint64_t tokenizer_;
  const bool local_prefill_;
  const wire::Mixing mixing_;
  const Duration report_timeout_;
  const TimePoint patient_until_;
  const Circuit::Times circuit_;
  const uint64_t seed_;
  const std::function<void()> changed_;
  const std::function<void()> reported_;
  Workers usable_;
  PrefixIndex prefixes_;
  std::map<worker::v1::Role, Pool> pools_;
  std::shared_ptr<WorkerDirectory*> alive_;  // what comes later finds out that we are gone
  std::unique_ptr<Resolver> resolver_;
};

// What placement needs to know of a worker.
WorkerView ViewOf(const Workers::Entry& entry, TimePoint now);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_WORKER_DIRECTORY_H_
