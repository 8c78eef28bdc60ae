// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/worker.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/convert.h"

namespace setu::prefill {
namespace {

std::string RandomIncarnation() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

int32_t PoolTokens(engine::ModelRunner& runner) {
  return runner.pool().total() * runner.options().block_tokens;
}

worker::v1::DescribeResponse Describe(engine::ModelRunner& runner, const std::string& incarnation) {
  worker::v1::DescribeResponse description;
  description.set_role(worker::v1::ROLE_PREFILL);
  description.set_incarnation(incarnation.empty() ? RandomIncarnation() : incarnation);
  *description.mutable_fingerprint() = wire::ToProto(runner.fingerprint());
  description.set_model_name(runner.config().name);
  description.set_architecture(runner.config().architecture);
  description.set_quantization(runner.config().quantization);
  description.set_context_length(runner.config().context_length);
  description.set_pool_tokens(PoolTokens(runner));
  description.set_wire_version_min(wire::kWireVersion);
  description.set_wire_version_max(wire::kWireVersion);
  return description;
}

worker::v1::WatchLoadResponse Report(const Snapshot& snapshot, int32_t running_max) {
  worker::v1::WatchLoadResponse report;
  report.set_ready(true);  // loading has already made a token
  report.set_draining(snapshot.draining);
  report.set_blocks_total(snapshot.blocks_total);
  report.set_blocks_free(snapshot.blocks_free);
  report.set_running(snapshot.running);
  report.set_running_max(running_max);
  report.set_queued(snapshot.running + snapshot.queued);
  report.set_queued_tokens(snapshot.queued_tokens);
  report.set_tokens_per_second(snapshot.tokens_per_second);
  return report;
}

}  // namespace

Worker::Worker(const WorkerOptions& options, std::unique_ptr<engine::ModelRunner> runner,
               rpc::ChannelFactory& channels, const Clock& clock, Logger& logger)
    : options_(options),
      runner_(std::move(runner)),
      logger_(logger),
      worker_service_(Describe(*runner_, options.incarnation), [this] { BeginDrain(); }),
      loop_(options.loop, *runner_, channels, clock,
            [this](const Snapshot& snapshot) {
              worker_service_.Publish(Report(snapshot, runner_->options().max_logits));
            }),
      prefill_service_({.vocabulary = runner_->config().vocabulary,
                        .tokens = runner_->max_sequence_tokens(),
                        .block_tokens = runner_->options().block_tokens},
                       loop_) {}

Worker::~Worker() { Stop(); }

void Worker::BeginDrain() {
  logger_.Info("draining: started prompts finish, new ones are refused");
  loop_.BeginDrain();
}

void Worker::Stop() {
  worker_service_.EndWatches();
  loop_.Stop();
}

Snapshot Worker::snapshot() const {
  Snapshot snapshot = loop_.snapshot();
  snapshot.refused_invalid = prefill_service_.invalid();
  return snapshot;
}

std::string Worker::capacity_line() const {
  return absl::StrCat(runner_->pool().total(), " blocks x ", runner_->options().block_tokens,
                      " tokens = ", PoolTokens(*runner_), " tokens, chunk ",
                      options_.loop.chunk_tokens, ", queue ", options_.loop.queue, ", ",
                      runner_->ops().path_name(), " on ", runner_->ops().isa_name(), ", ",
                      runner_->ops().threads(), " threads");
}

}  // namespace setu::prefill
