// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/kv_transfer/sender.h"
#include "common/worker/description.h"

namespace setu::prefill {

Worker::Worker(const WorkerOptions& options, std::unique_ptr<engine::ModelRunner> runner,
               std::unique_ptr<kv_transfer::SharedStaging> staging, rpc::ChannelFactory& channels,
               const Clock& clock, Logger& logger)
    : options_(options),
      runner_(std::move(runner)),
      staging_(std::move(staging)),
      logger_(logger),
      worker_service_(worker::Describe(worker::v1::ROLE_PREFILL, *runner_, options.incarnation),
                      [this] { BeginDrain(); }),
      probe_(runner_->ops(), runner_->weights(), roofline::ProbeLockPath(), clock.Now()),
      loop_(
          options.loop, *runner_, roofline::MeasureStepModel(*runner_),
          [this, &channels, &clock](const std::string& address, kv_transfer::PushPlan plan,
                                    kv_transfer::PushDone done) {
            return kv_transfer::GrpcPush::Start(channels.Connect(address), runner_->storage(),
                                                staging_.get(), std::move(plan), clock,
                                                std::move(done));
          },
          &probe_, clock, logger,
          [this](const Snapshot& snapshot, std::span<const kv::PrefixChange> changes) {
            worker_service_.Publish(Report(snapshot, runner_->options().max_logits), changes);
          }),
      prefill_service_({.vocabulary = runner_->config().vocabulary,
                        .tokens = runner_->max_sequence_tokens(),
                        .block_tokens = runner_->options().block_tokens},
                       loop_),
      thread_([this] { Run(); }) {}

Worker::~Worker() { Stop(); }

void Worker::Run() {
  runner_->ops().AdoptCaller();
  while (!loop_.over()) {
    if (!loop_.Turn()) loop_.Wait();
  }
}

void Worker::BeginDrain() {
  logger_.Info("draining: started prompts finish, new ones are refused");
  loop_.BeginDrain();
}

void Worker::Stop() {
  worker_service_.EndWatches();
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
}

Snapshot Worker::snapshot() const {
  Snapshot snapshot = loop_.snapshot();
  snapshot.refused_invalid = prefill_service_.invalid();
  return snapshot;
}

std::string Worker::capacity_line() const {
  const uint64_t shared = staging_ == nullptr ? 0 : staging_->offer().bytes();
  return worker::CapacityLine(
      *runner_, absl::StrCat("chunk ", options_.loop.chunk_tokens, ", queue ", options_.loop.queue,
                             ", ", shared >> 20, " MiB shared for KV"));
}

}  // namespace setu::prefill
