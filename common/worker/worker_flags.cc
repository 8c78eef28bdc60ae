// SPDX-License-Identifier: Apache-2.0
#include "common/worker/worker_flags.h"

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "kernels/device.h"

namespace setu::worker {
namespace {

void Tell(const model::CacheUse& cache, Logger& logger) {
  if (cache.read.ok()) {
    logger.Info(absl::StrFormat("read packed weights from %s", cache.path));
    return;
  }
  if (!absl::IsNotFound(cache.read)) {
    logger.Warning(
        absl::StrFormat("packed weights in %s are not used: %s", cache.path, cache.read.message()));
  }
  if (cache.written.ok()) {
    logger.Info(absl::StrFormat("wrote packed weights to %s (%d MiB): the next start reads them",
                                cache.path, cache.bytes >> 20));
  } else if (absl::IsAborted(cache.written)) {
    logger.Info(absl::StrFormat("packed weights in %s: %s", cache.path, cache.written.message()));
  } else {
    logger.Warning(absl::StrFormat(
        "packed weights are not kept in %s: %s; the next start packs them again: make room for "
        "%d MiB in a folder that this process may write to, or leave --cache-packed away",
        cache.path, cache.written.message(), (cache.bytes >> 20) + 1));
  }
}

}  // namespace

void WorkerFlags::AddModelTo(config::Options& options) {
  options.Add("model", &model, "GGUF file").Required();
  AddLoadingTo(options);
}

void WorkerFlags::AddLoadingTo(config::Options& options) {
  options
      .Add("numerics", &numerics,
           "numeric path, the same on all workers; auto: bf16-tile with AMX, else int8-g32")
      .OneOf({"auto", "f32", "int8-g32", "bf16-tile"});
  options.Add("kv-dtype", &kv_dtype, "type of keys and values, the same on all workers")
      .OneOf({"auto", "f32", "f16", "bf16", "int8"});
  options
      .Add("weights", &weights,
           "what f32, f16 and bf16 weights become at load, on all workers; others stay")
      .OneOf({"auto", "int8", "int4"});
  options.Add("cache-packed", &cache_packed,
              "read packed weights from a file beside the model, where an earlier start wrote "
              "them; as large as the weights");
  options.Add("isa", &isa, "instruction set").OneOf({"auto", "portable", "avx2", "avx512", "amx"});
  options.Add("threads", &threads, "of the model; 0: every core that this process may use")
      .Range(0, 4096);
  options.AddBytes("kv-memory", &kv_memory,
                   "memory of the KV pool; 0: a quarter of the memory limit, at most 4 GiB");
}

void WorkerFlags::AddTo(config::Options& options) {
  AddModelTo(options);
  options.AddListen("listen", &listen, "address of the gRPC server");
  options.AddListen("metrics-listen", &metrics_listen, "address of /metrics");
  options.Add("allow-mixed-numerics", &allow_mixed_numerics,
              "work with workers of other --numerics or --kv-dtype; gives up equal tokens");
  options
      .Add("pin-threads", &pin_threads,
           "each thread of the model on a core for itself, where nobody else uses the cores that "
           "this process may use; auto: off, unless setu up hands it cores")
      .OneOf({"auto", "on", "off"});
  options.Add("drain-grace", &drain_grace, "how long SIGTERM waits for what runs").Range(0, 86400);
  options.Add("channelz", &channelz, "offer gRPC's channelz service");
}

rpc::ServerOptions WorkerFlags::server() const {
  return {.max_receive_bytes = max_message_bytes, .channelz = channelz};
}

absl::StatusOr<rpc::Listener> WorkerFlags::TakePorts() const {
  SETU_ASSIGN_OR_RETURN(rpc::Listener listener, rpc::Listener::Bind("--listen", listen));
  SETU_RETURN_IF_ERROR(rpc::Listener::Bind("--metrics-listen", metrics_listen).status());
  return listener;
}

absl::StatusOr<std::unique_ptr<engine::ModelRunner>> WorkerFlags::LoadModel(
    engine::RunnerOptions options, Logger& logger) const {
  SETU_ASSIGN_OR_RETURN(options.cpu.path, kernels::ParseNumericPath(numerics));
  SETU_ASSIGN_OR_RETURN(options.cpu.kv_type, kernels::ParseKvType(kv_dtype));
  SETU_ASSIGN_OR_RETURN(options.float_weights, model::ParseFloatWeights(weights));
  options.model_path = model;
  options.cache_packed = cache_packed;
  options.cpu.isa = isa;
  options.cpu.threads = threads;
  options.cpu.pin_threads = pin_threads == "on";
  options.kv_memory_bytes = kv_memory;
  options.allow_mixed_numerics = allow_mixed_numerics;
  const SteadyClock clock;
  const TimePoint start = clock.Now();
  TimePoint told = start;
  const auto progress = [&](double share) {
    if (clock.Now() - told < std::chrono::seconds(1)) return;
    told = clock.Now();
    logger.Info(absl::StrFormat("loading %s: %.0f %%", model, 100.0 * share));
  };
  SETU_ASSIGN_OR_RETURN(auto runner, engine::ModelRunner::Load(options, progress));
  logger.Info(absl::StrFormat("loaded %s (%s, %s, %d MiB of weights) in %.1f s",
                              runner->config().name, runner->config().architecture,
                              runner->config().quantization, runner->weight_bytes() >> 20,
                              std::chrono::duration<double>(clock.Now() - start).count()));
  if (runner->cache_use()) Tell(*runner->cache_use(), logger);
  const int64_t used =
      runner->pool().total() * static_cast<int64_t>(runner->fingerprint().layout.block_bytes());
  // A pool is a whole number of blocks; what is left over for less than one is no news.
  if (kv_memory - used >= static_cast<int64_t>(runner->fingerprint().layout.block_bytes())) {
    logger.Info(absl::StrFormat(
        "--kv-memory is %d MiB; %d MiB of it are used, what %d whole contexts of %d tokens fill",
        kv_memory >> 20, used >> 20, options.max_logits, runner->config().context_length));
  }
  return runner;
}

}  // namespace setu::worker
