// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/worker/description.h"
#include "common/worker/roofline_report.h"

namespace setu::prefill {
namespace {

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
  report.set_kv_bytes(snapshot.kv_bytes);
  *report.mutable_roofline() = worker::ToProto(snapshot.roofline);
  return report;
}

}  // namespace

Worker::Worker(const WorkerOptions& options, std::unique_ptr<engine::ModelRunner> runner,
               rpc::ChannelFactory& channels, const Clock& clock, Logger& logger)
    : options_(options),
      runner_(std::move(runner)),
      logger_(logger),
      worker_service_(worker::Describe(worker::v1::ROLE_PREFILL, *runner_, options.incarnation),
                      [this] { BeginDrain(); }),
      loop_(options.loop, *runner_, roofline::MeasureStepModel(*runner_), channels, clock,
            [this](const Snapshot& snapshot, std::span<const kv::PrefixChange> changes) {
              worker_service_.Publish(Report(snapshot, runner_->options().max_logits), changes);
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
  return worker::CapacityLine(*runner_, absl::StrCat("chunk ", options_.loop.chunk_tokens,
                                                     ", queue ", options_.loop.queue));
}

}  // namespace setu::prefill
