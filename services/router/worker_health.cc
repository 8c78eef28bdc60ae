// SPDX-License-Identifier: Apache-2.0
#include "services/router/worker_health.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/router/standing.h"

namespace setu::router {
namespace {

std::string Who(const Worker& worker) {
  return absl::StrCat(RoleName(worker.description.role()), " worker ", worker.address);
}

std::pair<std::string, std::string> Key(const Worker& prefill, const Worker& decode) {
  return {prefill.description.incarnation(), decode.description.incarnation()};
}

// Its place among them; their number where it is not there.
size_t PlaceOf(const std::string& incarnation, const std::vector<Workers::Entry>& workers) {
  return std::find_if(workers.begin(), workers.end(),
                      [&](const Workers::Entry& entry) {
                        return entry.worker->description.incarnation() == incarnation;
                      }) -
         workers.begin();
}

std::string Why(const absl::Status& why) {
  return absl::StrCat(absl::StatusCodeToString(why.code()), ": ", why.message());
}

}  // namespace

WorkerHealth::WorkerHealth(rpc::EventLoop& loop, Logger& logger, const Circuit::Times& times,
                           uint64_t seed, std::function<void()> changed)
    : loop_(loop),
      logger_(logger),
      times_(times),
      seed_(seed),
      changed_(std::move(changed)),
      alive_(std::make_shared<WorkerHealth*>(this)) {}

Trial WorkerHealth::Try(const std::shared_ptr<Worker>& worker) {
  return Trial(std::shared_ptr<Circuit>(worker, &worker->circuit));
}

Trial WorkerHealth::TryPair(const Worker& prefill, const Worker& decode) {
  const auto pair = pairs_.find(Key(prefill, decode));
  return pair == pairs_.end() ? Trial() : Trial(pair->second.circuit);
}

void WorkerHealth::SetUnreached(const Workers& workers, std::vector<WorkerView>& prefills) const {
  const TimePoint now = loop_.clock().Now();
  for (const auto& [incarnations, pair] : pairs_) {
    if (pair.circuit->Admits(now)) continue;
    const size_t prefill = PlaceOf(incarnations.first, workers.prefill);
    const size_t decode = PlaceOf(incarnations.second, workers.decode);
    if (prefill == workers.prefill.size() || decode == workers.decode.size()) continue;
    prefills[prefill].unreached.push_back(decode);
  }
}

void WorkerHealth::Worked(Trial& trial, Worker& worker) {
  if (!trial.Worked()) return;
  Tell(worker.circuit_lines, "works", absl::StrCat(Who(worker), " works again"));
  changed_();
}

void WorkerHealth::Failed(Trial& trial, Worker& worker, const absl::Status& why) {
  if (!trial.Failed(loop_.clock().Now())) return;
  ++(worker.description.role() == worker::v1::ROLE_PREFILL ? opened_.prefill : opened_.decode);
  Tell(worker.circuit_lines, "failed",
       absl::StrCat(Who(worker), " failed and gets nothing ", ForHowLong(worker.circuit), ": ",
                    Why(why)));
  ChangeAt(worker.circuit.half_open_at());
}

void WorkerHealth::PairWorked(Trial& trial, const Worker& prefill, const Worker& decode) {
  if (!trial.Worked()) return;
  const auto pair = pairs_.find(Key(prefill, decode));
  if (pair != pairs_.end()) {
    Tell(pair->second.lines, "works", absl::StrCat(Who(prefill), " reaches ", Who(decode)));
  }
  changed_();
}

void WorkerHealth::PairFailed(Trial& trial, const Worker& prefill, const Worker& decode,
                              const absl::Status& why) {
  const TimePoint now = loop_.clock().Now();
  std::erase_if(pairs_, [&](const Pairs::value_type& known) {
    return known.second.circuit->half_open_at() + kMemory < now;
  });
  const auto [place, is_new] = pairs_.try_emplace(Key(prefill, decode));
  Pair& pair = place->second;
  if (is_new) {
    const size_t name = std::hash<std::string>()(place->first.first + place->first.second);
    pair.circuit = std::make_shared<Circuit>(times_, seed_ + name);
    trial = Trial(pair.circuit);
  }
  if (!trial.Failed(now)) return;
  ++opened_.pair;
  Tell(pair.lines, "failed",
       absl::StrCat(Who(prefill), " does not reach ", Who(decode), ", and sends nothing there ",
                    ForHowLong(*pair.circuit), ": ", Why(why),
                    "; see that the one can connect to the other"));
  ChangeAt(pair.circuit->half_open_at());
}

void WorkerHealth::Full(Worker& worker, Duration length) {
  worker.full_until = std::max(worker.full_until, loop_.clock().Now() + length);
  ChangeAt(worker.full_until);
}

void WorkerHealth::ChangeAt(TimePoint when) {
  loop_.At(when, [alive = std::weak_ptr(alive_)] {
    if (const auto self = alive.lock()) (*self)->changed_();
  });
}

void WorkerHealth::Tell(ChangeLines& lines, const char* state, const std::string& line) {
  const auto news = lines.Next(loop_.clock().Now(), state, line);
  if (!news) return;
  const bool works = std::string_view(state) == "works";
  logger_.Write(works ? Logger::Level::kInfo : Logger::Level::kWarning, *news);
}

std::string WorkerHealth::ForHowLong(const Circuit& circuit) const {
  const std::chrono::duration<double> length(circuit.half_open_at() - loop_.clock().Now());
  return absl::StrFormat("for %.1f s", length.count());
}

}  // namespace setu::router
