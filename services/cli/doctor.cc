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
#include "kernels/cpu/cpu_quota.h"
#include "services/cli/commands.h"
#include "services/cli/doctor_report.h"
#include "services/cli/machine.h"

namespace setu::cli {
namespace {

struct DoctorFlags {
  std::string model;
  std::string numerics = "auto";
  std::string kv_dtype = "auto";
  std::string weights = "auto";
  std::string isa = "auto";
  int32_t threads = 0;
  int64_t kv_memory = 0;
  int32_t context = 512;
  bool json = false;
};

std::string LoadFlags(const DoctorFlags& flags) {
  return absl::StrCat(flags.kv_dtype == "auto" ? "" : " --kv-dtype " + flags.kv_dtype,
                      flags.weights == "auto" ? "" : " --weights " + flags.weights);
}

MachineFacts LookAtMachine(const DoctorFlags& flags) {
  const double quota = kernels::CgroupCpuQuota("/");
  return {.cpu = CpuModel(),
          .cores = static_cast<int32_t>(std::thread::hardware_concurrency()),
          .quota = std::isfinite(quota) ? std::optional(quota) : std::nullopt,
          .threads = flags.threads > 0 ? flags.threads : kernels::AvailableThreads(),
          .isas = kernels::AvailableIsas(),
          .memory_bytes = engine::MemoryLimitBytes(),
          .l3_bytes = roofline::LastCacheBytes(),
          .huge_pages = HugePages()};
}

absl::StatusOr<ModelFacts> LookAtModel(const DoctorFlags& flags, const MachineFacts& machine) {
  SETU_ASSIGN_OR_RETURN(const auto file, OpenModel(flags.model));
  if (file->file_bytes() > machine.memory_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(flags.model, " does not fit: it has ", file->file_bytes() >> 20,
                     " MiB, the memory limit is ", machine.memory_bytes >> 20,
                     " MiB; use a smaller quantisation or a larger machine"));
  }
  engine::RunnerOptions options = {.model_path = flags.model,
                                   .cpu = {.isa = flags.isa, .threads = flags.threads},
                                   .kv_memory_bytes = flags.kv_memory};
  SETU_ASSIGN_OR_RETURN(options.cpu.path, kernels::ParseNumericPath(flags.numerics));
  SETU_ASSIGN_OR_RETURN(options.cpu.kv_type, kernels::ParseKvType(flags.kv_dtype));
  SETU_ASSIGN_OR_RETURN(options.float_weights, model::ParseFloatWeights(flags.weights));
  SETU_ASSIGN_OR_RETURN(const auto runner, engine::ModelRunner::Load(options, nullptr));
  const kv::KvLayout& layout = runner->fingerprint().layout;
  return ModelFacts{
      .path = flags.model,
      .name = runner->config().name,
      .quantization = runner->config().quantization,
      .numerics = runner->fingerprint().numerics,
      .isa = runner->ops().isa_name(),
      .load_flags = LoadFlags(flags),
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
  options.Add("model", &flags.model, "GGUF file, loaded and measured; without it, the machine");
  options.Add("numerics", &flags.numerics, "numeric path")
      .OneOf({"auto", "f32", "int8-g32", "bf16-tile"});
  options.Add("kv-dtype", &flags.kv_dtype, "type of keys and values")
      .OneOf({"auto", "f32", "f16", "bf16", "int8"});
  options.Add("weights", &flags.weights, "what f32, f16 and bf16 weights become; others stay")
      .OneOf({"auto", "int8", "int4"});
  options.Add("isa", &flags.isa, "instruction set")
      .OneOf({"auto", "portable", "avx2", "avx512", "amx"});
  options.Add("threads", &flags.threads, "0: every core that this process may use").Range(0, 4096);
  options.AddBytes("kv-memory", &flags.kv_memory,
                   "memory of the KV pool; 0: a quarter of the memory limit, at most 4 GiB");
  options.Add("context", &flags.context, "tokens of a sequence, for what is expected")
      .Range(1, 1 << 24);
  options.Add("json", &flags.json, "print JSON");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  DoctorFacts facts{.machine = LookAtMachine(flags)};
  if (!flags.model.empty()) {
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
