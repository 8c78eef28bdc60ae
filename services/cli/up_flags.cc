// SPDX-License-Identifier: Apache-2.0
#include "services/cli/up_flags.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace setu::cli {
namespace {

std::string Switch(const char* name, bool on) {
  return absl::StrCat("--", name, "=", on ? "true" : "false");
}

}  // namespace

std::string TimeArgument(Duration duration) {
  return absl::StrCat(std::chrono::ceil<std::chrono::milliseconds>(duration).count(), "ms");
}

void UpFlags::AddTo(config::Options& options) {
  options.AddPositional("model", &model, "GGUF file");
  options.Add("prefill-workers", &prefill_workers, "processes that read prompts").Range(1, 64);
  options.Add("decode-workers", &decode_workers, "processes that write tokens").Range(1, 64);
  options.Add("port", &port, "of the router").Range(1, 65535);
  options.Add("metrics-port", &metrics_port, "of the router's metrics; 0: any free one")
      .Range(0, 65535);
  options.Add("host", &host, "address the router listens on");
  options
      .Add("numerics", &numerics,
           "numeric path of all workers; auto: bf16-tile with AMX, else int8-g32")
      .OneOf({"auto", "f32", "int8-g32", "bf16-tile"});
  options.Add("kv-dtype", &kv_dtype, "type of keys and values on all workers")
      .OneOf({"auto", "f32", "f16", "bf16", "int8"});
  options.Add("weights", &weights, "what f32, f16 and bf16 weights become at load; others stay")
      .OneOf({"auto", "int8", "int4"});
  options.Add("cache-packed", &cache_packed,
              "workers read packed weights from a file beside the model, where an earlier start "
              "wrote them; as large as the weights");
  options.Add("isa", &isa, "instruction set").OneOf({"auto", "portable", "avx2", "avx512", "amx"});
  options.Add("threads", &threads, "of all workers together; 0: every core").Range(0, 4096);
  options
      .Add("pin-threads", &pin_threads,
           "each thread of a model on a core for itself; auto: where each worker gets two or more")
      .OneOf({"auto", "on", "off"});
  options.AddBytes("kv-memory", &kv_memory,
                   "of all workers together; 0: a quarter of the memory, at most 4 GiB a worker");
  options.AddBytes("kv-shm", &kv_shm,
                   "memory of each prefill worker through which its KV goes; 0: by gRPC alone");
  options.Add("prefix-cache", &prefix_cache, "keep the KV of prompts for those that start alike");
  options.Add(
      "local-prefill", &local_prefill,
      "decode workers may compute prompts, where that is sooner or no prefill worker lives");
  options.Add("allow-mixed-numerics", &allow_mixed_numerics,
              "let workers of other numerics join; gives up equal tokens");
  options
      .Add("itl-target-ms", &itl_target_ms,
           "a decode step that computes prompts shall take no longer; 0: as long as they need")
      .Range(0, 60000);
  options
      .Add("queue-timeout", &queue_timeout,
           "a new prompt waits at most; make it less than what your clients call too late")
      .Range(0.001, 3600);
  options.Add("auth-tokens", &auth_tokens, "the router's file of tenants and tokens");
  options.Add("cluster-secret", &cluster_secret, "the router's, for --auth-tokens");
  options.AddAddress("otlp-endpoint", &otlp_endpoint,
                     "the router's collector of traces, by OTLP over gRPC; absent: none");
  options.Add("drain-grace", &drain_grace, "how long each process may drain at the end")
      .Range(0, 86400);
}

std::vector<std::string> UpFlags::WorkerArguments(const Share& share, bool pinned) const {
  return {absl::StrCat("--model=", model[0]),
          absl::StrCat("--numerics=", numerics),
          absl::StrCat("--kv-dtype=", kv_dtype),
          absl::StrCat("--weights=", weights),
          Switch("cache-packed", cache_packed),
          absl::StrCat("--isa=", isa),
          absl::StrCat("--threads=", share.threads),
          absl::StrCat("--pin-threads=", pinned ? "on" : "off"),
          absl::StrCat("--kv-memory=", share.kv_bytes),
          Switch("prefix-cache", prefix_cache),
          Switch("allow-mixed-numerics", allow_mixed_numerics)};
}

std::vector<std::string> UpFlags::RouterArguments() const {
  std::vector<std::string> arguments = {
      absl::StrCat("--model=", model[0]), Switch("local-prefill", local_prefill),
      Switch("allow-mixed-numerics", allow_mixed_numerics),
      absl::StrCat("--queue-timeout=", TimeArgument(queue_timeout))};
  if (auth_tokens) arguments.push_back(absl::StrCat("--auth-tokens=", *auth_tokens));
  if (cluster_secret) arguments.push_back(absl::StrCat("--cluster-secret=", *cluster_secret));
  if (!otlp_endpoint.empty()) arguments.push_back(absl::StrCat("--otlp-endpoint=", otlp_endpoint));
  return arguments;
}

}  // namespace setu::cli
