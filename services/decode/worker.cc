// SPDX-License-Identifier: Apache-2.0
#include "services/decode/worker.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/inbox.h"
#include "common/kv_transfer/kv_transfer_service.h"
#include "common/kv_transfer/receiver.h"
#include "common/worker/description.h"
#include "common/worker/worker_service.h"
#include "services/decode/decode_service.h"
#include "services/decode/event.h"
#include "services/decode/loop.h"

namespace setu::decode {
namespace {

worker::v1::DescribeResponse Describe(const WorkerOptions& options, engine::Runner& runner) {
  worker::v1::DescribeResponse description =
      worker::Describe(worker::v1::ROLE_DECODE, runner, options.incarnation);
  description.set_grant_output_tokens(options.grant_output_tokens);
  description.set_resume_watermark(options.resume_watermark);
  return description;
}

}  // namespace

struct Worker::State {
  State(const WorkerOptions& worker_options, std::unique_ptr<engine::ModelRunner> model,
        const Clock& clock, Logger& logger)
      : options(worker_options),
        runner(std::move(model)),
        inbox(options.inbox_events),
        receiver(wire::ToProto(runner->fingerprint()), runner->config().vocabulary,
                 runner->storage(), clock,
                 [this](kv_transfer::TransferEvent event) {
                   std::visit([this](auto& e) { inbox.PushUnbounded(std::move(e)); }, event);
                 }),
        transfer_service(receiver),
        decode_service(inbox, runner->config().vocabulary),
        worker_service(Describe(options, *runner), [this] { inbox.PushUnbounded(DrainAsked{}); }),
        probe(runner->ops(), runner->weights(), roofline::ProbeLockPath(), clock.Now()),
        loop(options, *runner, roofline::MeasureStepModel(*runner), receiver, inbox, &probe, clock,
             logger,
             [this](const Snapshot& snapshot, auto changes) { Publish(snapshot, changes); }) {}

  void Run() {
    runner->ops().AdoptCaller();
    while (!over) {
      if (!loop.Turn()) inbox.WaitUntil(loop.next_timer());
    }
  }

  void Publish(const Snapshot& snapshot, std::span<const kv::PrefixChange> changes) {
    worker_service.Publish(Report(snapshot), changes);
    std::lock_guard lock(mutex);
    newest = snapshot;
    published.notify_all();
  }

  const WorkerOptions options;
  const std::unique_ptr<engine::ModelRunner> runner;
  Inbox<Event> inbox;
  kv_transfer::Receiver receiver;
  kv_transfer::KvTransferService transfer_service;
  DecodeService decode_service;
  worker::WorkerService worker_service;
  std::mutex mutex;
  std::condition_variable published;
  Snapshot newest;
  roofline::IdleProbe probe;
  Loop loop;
  std::atomic<bool> over = false;
  std::thread thread;  // last: runs while all else is there
};

Worker::Worker(const WorkerOptions& options, std::unique_ptr<engine::ModelRunner> runner,
               const Clock& clock, Logger& logger)
    : state_(std::make_unique<State>(options, std::move(runner), clock, logger)) {
  state_->thread = std::thread([this] { state_->Run(); });
}

Worker::~Worker() {
  state_->over = true;
  Stop();  // wakes the thread
  state_->thread.join();
}

std::vector<grpc::Service*> Worker::services() {
  return {&state_->decode_service, &state_->transfer_service, &state_->worker_service};
}

void Worker::BeginDrain() { state_->inbox.PushUnbounded(DrainAsked{}); }

bool Worker::WaitDrained(Duration limit) {
  std::unique_lock lock(state_->mutex);
  const Snapshot& newest = state_->newest;
  return state_->published.wait_for(lock, limit,
                                    [&] { return newest.draining && newest.running == 0; });
}

void Worker::Stop() {
  state_->worker_service.EndWatches();
  state_->inbox.PushUnbounded(StopAsked{});
}

Snapshot Worker::snapshot() const {
  std::unique_lock lock(state_->mutex);
  Snapshot snapshot = state_->newest;
  lock.unlock();
  const worker::BusyTime::Reading reading = state_->loop.busy();
  snapshot.at = reading.at;
  snapshot.busy = reading.busy;
  return snapshot;
}

std::string Worker::model_name() const { return state_->runner->config().name; }

std::string Worker::capacity_line() const {
  return worker::CapacityLine(*state_->runner,
                              absl::StrCat("batch ", snapshot().sequences_max, ", grant ",
                                           state_->options.grant_output_tokens, " tokens"));
}

}  // namespace setu::decode
