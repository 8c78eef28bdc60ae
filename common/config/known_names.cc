// SPDX-License-Identifier: Apache-2.0
#include "common/config/known_names.h"

#include <algorithm>

#include "common/config/entry.h"

namespace setu::config {
namespace {

constexpr std::string_view kNames[] = {
    "address",
    "address-versus",
    "allow-mixed-numerics",
    "architecture",
    "arrivals",
    "beside",
    "burst",
    "cancel-after",
    "cancel-share",
    "capacity",
    "channelz",
    "chat",
    "chunk-tokens",
    "concurrency",
    "config",
    "context",
    "csv",
    "deadline",
    "decode",
    "decode-workers",
    "default-deadline",
    "drain-grace",
    "duration",
    "ffn",
    "figures",
    "frequency-penalty",
    "grant-output-tokens",
    "head-dim",
    "heads",
    "hidden",
    "host",
    "html",
    "ignore-eos",
    "isa",
    "itl-target-ms",
    "json",
    "kv-dtype",
    "kv-heads",
    "kv-memory",
    "layers",
    "listen",
    "local-prefill",
    "logprobs",
    "max-open",
    "max-running",
    "max-tokens",
    "metrics-listen",
    "metrics-port",
    "min-p",
    "min-tokens",
    "model",
    "n",
    "numerics",
    "once",
    "out",
    "pin-threads",
    "port",
    "prefill",
    "prefill-workers",
    "prefix-cache",
    "prefix-tokens",
    "prefixes",
    "presence-penalty",
    "prompt-tokens",
    "queue",
    "queue-timeout",
    "rate",
    "repetition-penalty",
    "requests",
    "resume-timeout",
    "resume-watermark",
    "round-seconds",
    "rounds",
    "seed",
    "shape",
    "stall-limit",
    "stop",
    "svg",
    "system",
    "temperature",
    "threads",
    "tied",
    "times-capacity",
    "top-k",
    "top-p",
    "trace",
    "ttft-target-ms",
    "type",
    "versus",
    "vocabulary",
    "weights",
};

}  // namespace

std::span<const std::string_view> KnownNames() { return kNames; }

bool IsKnownVariable(std::string_view variable) {
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return VariableOf(name) == variable; });
}

}  // namespace setu::config
