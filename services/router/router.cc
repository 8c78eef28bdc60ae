// SPDX-License-Identifier: Apache-2.0
#include "services/router/router.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/router/change_lines.h"
#include "services/router/cluster_service.h"
#include "services/router/inference_service.h"
#include "services/router/overload_log.h"

namespace setu::router {
namespace {

constexpr Duration kCanaryDeadline = std::chrono::seconds(30);

uint64_t Random() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

RouterOptions WithChance(RouterOptions options) {
  options.workers.seed = Random();
  return options;
}

// Why a request is refused: the counter of it.
using Cause = uint64_t RouterSnapshot::*;
constexpr Cause kInvalid = &RouterSnapshot::refused_invalid;
constexpr Cause kFull = &RouterSnapshot::refused_full;
constexpr Cause kLate = &RouterSnapshot::refused_late;
constexpr Cause kQuota = &RouterSnapshot::refused_quota;
constexpr Cause kDraining = &RouterSnapshot::refused_draining;
constexpr Cause kNoWorkers = &RouterSnapshot::refused_no_workers;

absl::Status Draining() { return absl::UnavailableError("this router is draining"); }

absl::Status QueueFull() {
  return absl::ResourceExhaustedError("the queue is full; retry after the delay given");
}

}  // namespace

struct Router::Owned {
  explicit Owned(Router& router)
      : calls(MakeGrpcWorkerCalls(router.loop_, router.channels_)),
        directory(
            router.loop_, *calls, router.logger_, router.options_.workers,
            router.model_.tokenizer_digest, [&router] { router.WorkersChanged(); },
            [&router] { router.WorkersReported(); }),
        health(router.loop_, router.logger_, router.options_.workers.circuit,
               router.options_.workers.seed, [this] { dispatcher.Kick(); }),
        dispatcher(router.loop_, directory, health, router.options_.queue,
                   [&router] { router.Publish(); }),
        readiness(
            router.loop_, [&router] { router.StartCanary(); },
            [this, &router](bool ready) {
              const char* line = ready ? "ready" : "not ready: no fitting pair of workers";
              const auto news = readiness_lines.Next(router.clock_.Now(), line, line);
              const auto level = ready ? Logger::Level::kInfo : Logger::Level::kWarning;
              if (news) router.logger_.Write(level, *news);
              router.Publish();
              if (on_readiness) on_readiness(ready && !router.draining_);
            }),
        overload(router.loop_, router.logger_),
        services(ServicesOf(router, router.observer_)),
        canary_services(ServicesOf(router, nobody)) {}

  FlowServices ServicesOf(Router& router, FlowObserver& observer) {
    return {router.loop_,       dispatcher,           health, readiness, *calls, *router.tokenizer_,
            router.model_.name, router.options_.flow, counts, observer};
  }

  FlowCounts counts;
  const std::unique_ptr<WorkerCalls> calls;
  WorkerDirectory directory;
  WorkerHealth health;
  Dispatcher dispatcher;
  Readiness readiness;
  ChangeLines readiness_lines;
  OverloadLog overload;
  std::function<void(bool)> on_readiness;
  FlowObserver nobody;
  const FlowServices services;
  const FlowServices canary_services;  // not measured
  // Of clients.
  struct Admitted {
    std::shared_ptr<RequestFlow> flow;
    std::shared_ptr<Visit> visit;
    int64_t prompt_tokens = 0;
    int64_t expected_tokens = 0;  // in all
  };
  std::map<uint64_t, Admitted> flows;
  std::shared_ptr<RequestFlow> canary;
  uint64_t next_flow = 0;
  RouterSnapshot totals;  // its counters
};

Router::Router(const RouterOptions& options, std::unique_ptr<tokenizer::Tokenizer> tokenizer,
               ModelInfo model, rpc::ChannelFactory& channels, const Clock& clock, Logger& logger,
               FlowObserver& observer)
    : options_(WithChance(options)),
      tokenizer_(std::move(tokenizer)),
      model_(std::move(model)),
      validator_({.name = model_.name,
                  .tokenizer = tokenizer_.get(),
                  .chat = model_.chat.get(),
                  .temperature = model_.temperature},
                 Random),
      channels_(channels),
      clock_(clock),
      logger_(logger),
      observer_(observer),
      everybody_(std::make_shared<Tenant>(0, 0, Tenant::Limits{})),
      router_id_(absl::StrCat(absl::Hex(Random(), absl::kZeroPad16))),
      loop_(clock, options.inbox_events),
      service_(std::make_unique<InferenceService>(*this)),
      cluster_service_(std::make_unique<ClusterService>(*this)),
      pool_(std::make_unique<TokenisingPool>(options.tokenising_threads, options.tokenising_jobs)),
      owner_([this] { loop_.Run(); }) {
  loop_.PostCompletion([this] { owned_ = std::make_unique<Owned>(*this); });
}

Router::~Router() { Stop(); }

std::vector<grpc::Service*> Router::services() { return {service_.get(), cluster_service_.get()}; }

bool Router::LookAtWorkers(std::function<void(const std::vector<WorkerDirectory::Listing>&)> look) {
  return loop_.Post([this, look = std::move(look)] { look(owned_->directory.All()); });
}

void Router::OnReadiness(std::function<void(bool)> changed) {
  loop_.PostCompletion([this, changed = std::move(changed)]() mutable {
    owned_->on_readiness = std::move(changed);
    owned_->on_readiness(owned_->readiness.ready() && !draining_);
  });
}

RouterSnapshot Router::snapshot() const {
  const std::lock_guard lock(snapshot_mutex_);
  return snapshot_;
}

void Router::BeginDrain() {
  if (draining_.exchange(true)) return;
  loop_.PostCompletion([this] {
    logger_.Info(absl::StrCat("draining: ", owned_->totals.running,
                              " requests go on, new ones are refused"));
    if (owned_->on_readiness) owned_->on_readiness(false);
    Publish();
  });
}

bool Router::WaitDrained(Duration grace) {
  std::unique_lock lock(snapshot_mutex_);
  return snapshot_changed_.wait_for(
      lock, grace, [this] { return snapshot_.draining && snapshot_.running == 0; });
}

void Router::EndRequests() {
  loop_.PostCompletion([this] {
    const absl::Status ended = absl::UnavailableError("the router ends; try another");
    const auto flows = owned_->flows;
    for (const auto& [id, admitted] : flows) admitted.flow->Cancel(ended);
    if (const auto canary = owned_->canary) canary->Cancel(ended);
  });
}

void Router::Stop() {
  if (!owner_.joinable()) return;
  draining_ = true;
  pool_.reset();  // what it held is posted, and refused
  EndRequests();
  // The first turn comes after that, and leaves all coroutines ended for the second: then nobody
  // uses what is owned.
  loop_.PostCompletion([this] {
    loop_.PostCompletion([this] {
      owned_ = nullptr;
      loop_.Stop();
    });
  });
  owner_.join();
}

Limits Router::LimitsNow() const {
  Limits limits;
  limits.context_length = model_.context_length;
  if (const int32_t tokens = pool_tokens_; tokens > 0) limits.pool_tokens = tokens;
  return limits;
}

absl::StatusOr<Caller> Router::Identify(const std::optional<std::string>& token) const {
  if (options_.callers != nullptr) return options_.callers->Identify(token);
  return Caller(everybody_, Priority::kNormal);
}

void Router::RefuseStranger(Origin origin, std::shared_ptr<ClientSink> sink, absl::Status why) {
  loop_.PostCompletion([this, origin = std::move(origin), sink = std::move(sink),
                        why = std::move(why)] { EndRefused(origin, {.status = why}, *sink); });
}

// Any thread; the sink hears of it on the owner's.
void Router::Refuse(const Call& call, Cause cause, absl::Status why) {
  loop_.PostCompletion([this, call, cause, why = std::move(why)] {
    FlowEnd end;
    end.status = why;
    if (absl::IsResourceExhausted(why)) {
      const Share share{call.caller.tenant->number(), call.caller.tenant->weight(),
                        call.caller.priority};
      end.retry_after = std::max(owned_->dispatcher.RetryAfter(share),
                                 call.caller.tenant->RetryAfter(clock_.Now()));
      if (cause != kQuota) owned_->overload.Refused(why.message());
    }
    ++(owned_->totals.*cause);
    Publish();
    EndRefused(call.origin, end, *call.sink);
  });
}

void Router::EndRefused(const Origin& origin, const FlowEnd& end, ClientSink& sink) {
  if (options_.tracer != nullptr) options_.tracer->Refused(origin, clock_.Now(), end.status);
  sink.End(end);  // last, as that of a request that was admitted
}

// Refuses what it can before the request is parsed, which is work.
void Router::Generate(std::string bytes, Call call) {
  if (draining_) return Refuse(call, kDraining, Draining());
  if (call.caller.tenant->full_at == departures_) return Refuse(call, kFull, QueueFull());
  absl::StatusOr<std::shared_ptr<Visit>> visit = Visit::Enter(call.caller, clock_.Now());
  if (!visit.ok()) return Refuse(call, kQuota, visit.status());
  const Call copy = call;
  auto job = [this, bytes = std::move(bytes), call = std::move(call),
              visit = *std::move(visit)]() mutable {
    absl::StatusOr<ValidRequest> request = validator_.Validate(bytes, LimitsNow());
    if (!request.ok()) {
      visit = nullptr;  // over before its client hears of it
      return Refuse(call, kInvalid, request.status());
    }
    const Call copy = call;
    auto admit = [this, call = std::move(call), visit = std::move(visit),
                  request = *std::move(request)]() mutable {
      Admit(std::move(call), std::move(visit), std::move(request));
    };
    if (loop_.Post(std::move(admit))) return;
    Refuse(copy, kFull,
           absl::ResourceExhaustedError("the router is behind; retry after the delay given"));
  };
  if (Offload(copy.caller, std::move(job))) return;
  Refuse(copy, kFull,
         absl::ResourceExhaustedError("too many requests at once; retry after the delay given"));
}

void Router::Admit(Call call, std::shared_ptr<Visit> visit, ValidRequest request) {
  const PlacementRequest size = SizeOf(request, 0, request.choices());
  Dispatcher& dispatcher = owned_->dispatcher;
  if (draining_) return Refuse(call, kDraining, Draining());
  if (!owned_->directory.Usable().HasPair()) {
    return Refuse(call, kNoWorkers, owned_->directory.NoPair());
  }
  if (absl::Status fits = dispatcher.CheckFits(size); !fits.ok()) {
    return Refuse(call, kInvalid, std::move(fits));
  }
  if (dispatcher.FullFor(visit->share())) {
    call.caller.tenant->full_at = dispatcher.departures();
    return Refuse(call, kFull, QueueFull());
  }
  absl::Status in_time = dispatcher.CheckInTime(visit->share(), call.deadline);
  if (!in_time.ok()) return Refuse(call, kLate, std::move(in_time));
  absl::Status begun = visit->Begin(ExpectedWork(size), clock_.Now());
  if (!begun.ok()) return Refuse(call, kQuota, std::move(begun));
  const uint64_t id = owned_->next_flow++;
  ++owned_->totals.admitted;
  ++owned_->totals.running;
  Owned::Admitted& admitted = owned_->flows[id];
  admitted = {nullptr, std::move(visit), size.prompt_tokens, ExpectedWork(size)};
  Arrival arrival = ArrivalOf(call, request, options_.tracer);
  arrival.share = admitted.visit->share();
  arrival.cache_salt = admitted.visit->tenant().cache_salt();
  admitted.flow =
      RequestFlow::Start(owned_->services, std::move(arrival), std::move(request),
                         std::move(call.sink), [this, id](const FlowEnd& end) { Ended(id, end); });
  Publish();
  call.admitted(admitted.flow);
}

Arrival Router::ArrivalOf(const Call& call, const ValidRequest& request, RequestTracer* tracer) {
  Arrival arrival;
  arrival.uuid = absl::StrCat(router_id_, "-", owned_->next_flow++);
  arrival.label = request.label().empty() ? arrival.uuid : request.label();
  arrival.at = call.origin.at;
  arrival.deadline = call.deadline;
  std::string id = call.origin.request_id;
  if (id.empty()) id = PlainOrEmpty(arrival.label);
  arrival.metadata.emplace_back("x-request-id", id.empty() ? arrival.uuid : id);
  std::string traceparent = call.origin.traceparent;
  if (tracer != nullptr) arrival.trace = tracer->Begin(traceparent);
  if (arrival.trace) traceparent = tracing::Traceparent(arrival.trace->context);
  if (!traceparent.empty()) arrival.metadata.emplace_back("traceparent", traceparent);
  return arrival;
}

// Two tokens through whichever pair placement chooses: the second one comes by way of the KV. It
// goes before prompts that wait, as what it is to find out is about them all.
void Router::StartCanary() {
  setu::v1::GenerateRequest wish;
  wish.mutable_token_ids()->add_ids(0);
  wish.mutable_sampling()->set_max_tokens(2);
  wish.mutable_sampling()->set_temperature(0);
  wish.mutable_stopping()->set_ignore_eos(true);
  absl::StatusOr<ValidRequest> request = validator_.Validate(wish.SerializeAsString(), LimitsNow());
  if (!request.ok()) return CanaryEnded(request.status());
  Call call{.origin = {.at = clock_.Now()}, .caller = {everybody_, Priority::kHigh}};
  call.deadline = call.origin.at + kCanaryDeadline;
  Arrival arrival = ArrivalOf(call, *request, nullptr);
  arrival.share.priority = call.caller.priority;
  arrival.goes_first = true;
  owned_->canary =
      RequestFlow::Start(owned_->canary_services, std::move(arrival), *std::move(request),
                         std::make_shared<NoSink>(), [this](const FlowEnd& end) {
                           owned_->canary = nullptr;
                           CanaryEnded(end.status);
                         });
}

// It is tried again and again; the log hears of a failure once, and not where a client's token has
// proved meanwhile what it was sent for.
void Router::CanaryEnded(const absl::Status& status) {
  if (!status.ok() && !owned_->readiness.ready()) {
    const std::string line = absl::StrCat("not ready: the canary failed: ", status.message());
    const auto news = owned_->readiness_lines.Next(clock_.Now(), line, line);
    if (news) logger_.Warning(*news);
  }
  owned_->readiness.CanaryEnded();
}

void Router::WorkersChanged() {
  const Workers& workers = owned_->directory.Usable();
  pool_tokens_ = owned_->directory.PoolTokens().value_or(0);
  owned_->totals.prefill_workers = workers.prefill.size();
  owned_->totals.decode_workers = workers.decode.size();
  owned_->totals.prefill_unusable = owned_->directory.Unusable(worker::v1::ROLE_PREFILL);
  owned_->totals.decode_unusable = owned_->directory.Unusable(worker::v1::ROLE_DECODE);
  owned_->totals.numerics =
      workers.decode.empty() ? ""
                             : workers.decode.front().worker->description.fingerprint().numerics();
  owned_->readiness.PairsChanged(workers.HasPair());
  WorkersReported();
}

void Router::WorkersReported() {
  owned_->totals.prefix_blocks = owned_->directory.prefixes().blocks();
  owned_->dispatcher.Kick();
  Publish();
}

void Router::Ended(uint64_t id, const FlowEnd& end) {
  RouterSnapshot& totals = owned_->totals;
  --totals.running;
  if (end.status.ok()) {
    ++totals.finished;
  } else if (absl::IsCancelled(end.status) || absl::IsDeadlineExceeded(end.status)) {
    ++totals.cancelled;
  } else {
    ++totals.failed;
    if (absl::IsResourceExhausted(end.status)) owned_->overload.Refused(end.status.message());
  }
  if (draining_ && totals.running == 0) logger_.Info("drained: no request runs any more");
  // What it came to, in place of what was expected of it.
  const Owned::Admitted admitted = std::move(owned_->flows.extract(id).mapped());
  int64_t tokens = end.placed ? admitted.prompt_tokens : 0;
  for (const int32_t last : end.last_index) tokens += last + 1;
  admitted.visit->Settle(tokens - admitted.expected_tokens, clock_.Now());
  if (end.placed) {
    owned_->dispatcher.Settle(admitted.visit->share(), tokens - admitted.expected_tokens);
  }
  Publish();
}

void Router::Publish() {
  const Dispatcher& dispatcher = owned_->dispatcher;
  departures_ = dispatcher.departures();
  RouterSnapshot next = owned_->totals;
  next.resumes = owned_->counts.resumes;
  next.retries = owned_->counts.retries;
  next.local_prefills = owned_->counts.local_prefills;
  next.circuits_opened = owned_->health.opened();
  next.queue_length = dispatcher.queue_length();
  next.retry_after = dispatcher.RetryAfter(Share{});
  next.ready = owned_->readiness.ready();
  next.draining = draining_;
  const std::lock_guard lock(snapshot_mutex_);
  snapshot_ = std::move(next);
  snapshot_changed_.notify_all();
}

}  // namespace setu::router
