// SPDX-License-Identifier: Apache-2.0
#include "services/router/serve.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/metrics/exposer.h"
#include "common/tracing/otlp_exporter.h"
#include "services/router/metrics.h"
#include "services/router/request_tracer.h"

namespace setu::router {
namespace {

std::string CapacityLine(const RouterFlags& flags, const std::string& model) {
  const DirectoryOptions& workers = flags.router.workers;
  const std::string prefill =
      workers.prefill.empty() ? "on decode workers" : absl::StrJoin(workers.prefill, ",");
  return absl::StrCat("serving ", model, " on ", flags.listen, ": queue of ", flags.queue,
                      ", prefill ", prefill, ", decode ", absl::StrJoin(workers.decode, ","));
}

absl::Status CheckSomebodyPrefills(const DirectoryOptions& workers) {
  if (workers.local_prefill || !workers.prefill.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--prefill is required; or give --local-prefill, and decode workers compute all prompts");
}

// Null without --auth-tokens.
absl::StatusOr<std::unique_ptr<Callers>> CallersOf(const RouterFlags& flags, Logger& logger) {
  if (flags.auth_tokens && flags.cluster_secret) {
    SETU_ASSIGN_OR_RETURN(std::string secret, ReadClusterSecret(*flags.cluster_secret));
    return Callers::FromFile(*flags.auth_tokens, std::move(secret), logger);
  }
  if (flags.auth_tokens) {
    return absl::InvalidArgumentError(
        "--auth-tokens needs --cluster-secret, which keeps the tenants' cached prompts apart: a "
        "file that all routers have; make one: head -c 32 /dev/urandom > FILE");
  }
  if (!flags.cluster_secret) return std::unique_ptr<Callers>();
  return absl::InvalidArgumentError(
      "--cluster-secret is for --auth-tokens; give both, or neither: then all are one tenant");
}

// Null without --otlp-endpoint.
std::unique_ptr<tracing::OtlpExporter> ExporterOf(const RouterFlags& flags,
                                                  const std::string& model, Logger& logger) {
  if (flags.otlp_endpoint.empty()) return nullptr;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  tracing::Resource resource = {
      {"service.name", "setu-router"},
      {"service.instance.id", absl::StrCat(host.data(), "/", flags.listen)},
      {"host.name", std::string(host.data())},
      {"setu.model", model}};
  return std::make_unique<tracing::OtlpExporter>(flags.otlp_endpoint, std::move(resource),
                                                 tracing::BatchOptions(), logger);
}

RequestTracer::Random IdsOfTraces() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(),
                     device(), device(), device(), device()};
  return [random = std::mt19937_64(seed)]() mutable { return random(); };
}

void LookAfterUntilStopped(const Router& router, Callers* callers, StopSignals& signals,
                           Logger& logger) {
  constexpr std::chrono::seconds kLookEvery(1);
  constexpr std::chrono::seconds kFiguresEvery(5);
  const SteadyClock clock;
  RouterSnapshot before = router.snapshot();
  TimePoint since = clock.Now();
  while (!signals.WaitFor(kLookEvery)) {
    if (callers != nullptr) callers->Look();
    if (clock.Now() - since < kFiguresEvery) continue;
    const RouterSnapshot now = router.snapshot();
    const TimePoint at = clock.Now();  // a process that was stopped meanwhile looks later
    if (const auto figures = FiguresLine(before, now, at - since)) logger.Info(*figures);
    before = now;
    since = at;
  }
}

constexpr std::chrono::milliseconds kLookAgain(100);

void Drain(Router& router, TimePoint deadline, StopSignals& signals, Logger& logger) {
  const SteadyClock clock;
  router.BeginDrain();
  while (!router.WaitDrained(kLookAgain)) {
    if (clock.Now() < deadline && !signals.WaitFor(Duration::zero())) continue;
    logger.Warning("not drained; what still runs ends now");
    return router.EndRequests();
  }
}

// The spans of what ended last: within the grace, but a second at least and a few at most, as there
// may be no collector.
void Flush(tracing::OtlpExporter& exporter, TimePoint deadline, StopSignals& signals,
           Logger& logger) {
  const SteadyClock clock;
  const TimePoint now = clock.Now();
  deadline = std::clamp(deadline, now + std::chrono::seconds(1), now + std::chrono::seconds(5));
  exporter.Finish();
  while (!exporter.WaitFinished(kLookAgain)) {
    if (clock.Now() < deadline && !signals.WaitFor(Duration::zero())) continue;
    return logger.Warning("the last traces were not delivered");
  }
}

}  // namespace

void RouterFlags::AddTo(config::Options& options) {
  options.Add("model", &model, "GGUF file, for tokenizer and chat template only").Required();
  options.AddListen("listen", &listen, "address of the gRPC server");
  options.AddListen("metrics-listen", &metrics_listen, "address of /metrics");
  options.AddAddresses("prefill", &router.workers.prefill,
                       "prefill workers; a name may stand for several (also as dns:///NAME:PORT); "
                       "none are needed with --local-prefill");
  options.AddAddresses("decode", &router.workers.decode, "decode workers, likewise").Required();
  options.Add(
      "local-prefill", &router.workers.local_prefill,
      "decode workers may compute prompts, where that is sooner or no prefill worker lives");
  options.Add("allow-mixed-numerics", &router.workers.allow_mixed_numerics,
              "pair workers of other numerics, which allow it too; gives up equal tokens");
  options.Add("queue", &queue, "new prompts that may wait").Range(1, 65536);
  options.Add("queue-timeout", &router.queue.queue_timeout, "a new prompt waits at most")
      .Range(0.001, 3600);
  options.Add("resume-timeout", &router.queue.resume_timeout, "a resumed answer waits at most")
      .Range(0.001, 3600);
  options.Add("default-deadline", &router.default_deadline, "of requests that come without one")
      .Range(0.001, 86400);
  options
      .Add("age-bound", &router.queue.age_bound,
           "a lower priority, or a prompt that finds no room, is passed over at most")
      .Range(0.001, 3600);
  options.Add(
      "auth-tokens", &auth_tokens,
      "YAML file of tenants and digests of their bearer tokens; absent: no tokens are asked");
  options.Add("cluster-secret", &cluster_secret,
              "file of 32 or more random bytes, for --auth-tokens");
  options.AddAddress(
      "otlp-endpoint", &otlp_endpoint,
      "collector that gets a trace of each request, by OTLP over gRPC; absent: none");
  options.Add("drain-grace", &drain_grace, "how long SIGTERM waits for what runs").Range(0, 86400);
  options.Add("channelz", &server.channelz, "offer gRPC's channelz service");
}

absl::Status Serve(RouterFlags flags, StopSignals& signals, Logger& logger) {
  flags.router.queue.capacity = static_cast<size_t>(flags.queue);
  SETU_RETURN_IF_ERROR(CheckSomebodyPrefills(flags.router.workers));
  SETU_ASSIGN_OR_RETURN(const auto callers, CallersOf(flags, logger));
  flags.router.callers = callers.get();
  SETU_ASSIGN_OR_RETURN(rpc::Listener listener, rpc::Listener::Bind("--listen", flags.listen));
  SETU_RETURN_IF_ERROR(rpc::Listener::Bind("--metrics-listen", flags.metrics_listen).status());
  SETU_ASSIGN_OR_RETURN(const auto file, model::GgufFile::Open(flags.model));
  SETU_ASSIGN_OR_RETURN(auto tokenizer, tokenizer::Tokenizer::FromGguf(*file));
  SETU_ASSIGN_OR_RETURN(ModelInfo model, ReadModelInfo(*file));
  const std::string name = model.name;
  const SteadyClock clock;
  const auto channels = rpc::MakeTcpChannelFactory();
  ClientFigures figures;
  const auto exporter = ExporterOf(flags, name, logger);
  RequestTracer tracer(IdsOfTraces(), [&](auto trace) { exporter->Add(std::move(trace)); });
  if (exporter) flags.router.tracer = &tracer;
  Router router(flags.router, std::move(tokenizer), std::move(model), *channels, clock, logger,
                figures);
  const auto report = [&](metrics::Scrape& scrape) {
    Report(router.snapshot(), figures.snapshot(), callers ? callers->figures() : Callers::Figures{},
           exporter ? exporter->figures() : tracing::BatchFigures{}, logger.dropped(), scrape);
  };
  SETU_ASSIGN_OR_RETURN(const auto exposer,
                        metrics::Exposer::Start(flags.metrics_listen, name, "router", report));
  SETU_ASSIGN_OR_RETURN(const auto server, rpc::Server::Start(flags.server, router.services(),
                                                              std::move(listener), logger));
  router.OnReadiness([&](bool ready) { server->SetServing(ready); });
  logger.Info(absl::StrCat(CapacityLine(flags, name), "; metrics at ", exposer->url()));
  if (flags.router.workers.allow_mixed_numerics) {
    logger.Warning(
        "--allow-mixed-numerics: where workers of two numeric paths share a request, the same "
        "request may give other tokens; setu_mixed_numerics_total counts them");
  }
  LookAfterUntilStopped(router, callers.get(), signals, logger);
  const TimePoint grace_ends = clock.Now() + flags.drain_grace;
  Drain(router, grace_ends, signals, logger);
  server->Shutdown(std::chrono::seconds(1));
  router.Stop();
  if (exporter) Flush(*exporter, grace_ends, signals, logger);
  return absl::OkStatus();
}

}  // namespace setu::router
