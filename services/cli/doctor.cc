// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/engine/memory_limit.h"
#include "common/engine/model_runner.h"
#include "common/logging/logger.h"
#include "common/model/weights.h"
#include "common/worker/worker_flags.h"
#include "kernels/cpu/cpu_quota.h"
#include "services/cli/commands.h"
#include "services/cli/doctor_report.h"
#include "services/cli/machine.h"

namespace setu::cli {
namespace {

struct DoctorFlags {
  worker::WorkerFlags load;
  int32_t context = 512;
  bool json = false;
};

std::string LoadFlags(const worker::WorkerFlags& flags) {
  return absl::StrCat(flags.kv_dtype == "auto" ? "" : " --kv-dtype " + flags.kv_dtype,
                      flags.weights == "auto" ? "" : " --weights " + flags.weights);
}

MachineFacts LookAtMachine(const DoctorFlags& flags) {
  const double quota = kernels::CgroupCpuQuota("/");
  return {.cpu = CpuModel(),
          .cores = static_cast<int32_t>(std::thread::hardware_concurrency()),
          .quota = std::isfinite(quota) ? std::optional(quota) : std::nullopt,
          .threads = flags.load.threads > 0 ? flags.load.threads : kernels::AvailableThreads(),
          .isas = kernels::AvailableIsas(),
          .memory_bytes = engine::MemoryLimitBytes(),
          .l3_bytes = roofline::LastCacheBytes(),
          .huge_pages = HugePages()};
}

absl::StatusOr<ModelFacts> LookAtModel(const DoctorFlags& flags, const MachineFacts& machine) {
  SETU_ASSIGN_OR_RETURN(const auto file, OpenModel(flags.load.model));
  SETU_ASSIGN_OR_RETURN(const auto floats, model::ParseFloatWeights(flags.load.weights));
  const int64_t weight_bytes = model::PackedBytes(*file, floats);
  if (weight_bytes > machine.memory_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        flags.load.model, " does not fit: its weights take ", weight_bytes >> 20,
        " MiB, the memory limit is ", machine.memory_bytes >> 20,
        " MiB; use a smaller quantisation, --weights if they are floats, or a larger machine"));
  }
  StderrLogger logger("setu doctor");
  SETU_ASSIGN_OR_RETURN(const auto runner, flags.load.LoadModel({}, logger));
  const kv::KvLayout& layout = runner->fingerprint().layout;
  return ModelFacts{
      .path = flags.load.model,
      .name = runner->config().name,
      .quantization = runner->config().quantization,
      .numerics = runner->fingerprint().numerics,
      .isa = runner->ops().isa_name(),
      .load_flags = LoadFlags(flags.load),
      .weight_bytes = static_cast<int64_t>(runner->weight_bytes()),
      .huge_bytes = HugePageBytes(),
      .pool_tokens = int64_t{runner->pool().total()} * layout.block_tokens,
      .pool_bytes = runner->pool().total() * static_cast<int64_t>(layout.block_bytes()),
      .context = std::min<int64_t>(flags.context, runner->max_sequence_tokens() - 1),
      .step = roofline::MeasureStepModel(*runner)};
}

}  // namespace

int RunDoctor(const Arguments& arguments) {
  DoctorFlags flags;
  config::Options options(
      "setu doctor",
      "Says what this machine can do with a model: what limits it, what to expect, how to run it.",
      {"setu doctor", "setu doctor --model model.gguf",
       "setu doctor --model model.gguf --context 4096 --json"});
  options.Add("model", &flags.load.model,
              "GGUF file, loaded and measured; without it, the machine");
  flags.load.AddLoadingTo(options);
  options.Add("context", &flags.context, "tokens of a sequence, for what is expected")
      .Range(1, 1 << 24);
  options.Add("json", &flags.json, "print JSON");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  DoctorFacts facts{.machine = LookAtMachine(flags)};
  if (!flags.load.model.empty()) {
    auto model = LookAtModel(flags, facts.machine);
    if (!model.ok()) {
      std::fprintf(stderr, "setu doctor: %s\n", std::string(model.status().message()).c_str());
      return 1;
    }
    facts.model = *std::move(model);
  }
  std::fputs((flags.json ? DoctorJson(facts) : DoctorText(facts)).c_str(), stdout);
  return 0;
}

}  // namespace setu::cli
