// SPDX-License-Identifier: Apache-2.0
#include "kernels/device.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_quota.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/math.h"
#include "kernels/scores.h"

namespace setu::kernels {
namespace {

constexpr int kMostThreads = 1024;

// __builtin_cpu_supports also asks whether the system saves the registers (XGETBV).
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
// Linux lends a process the tiles only when asked (arch_prctl, ARCH_REQ_XCOMP_PERM of
// XFEATURE_XTILEDATA); asking again changes nothing.
bool HasAmx() {
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;  // CPUID 7.0, edx
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return HasAvx512() && __builtin_cpu_supports("avx512bf16") &&
         __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxBf16) != 0 &&
         (edx & kAmxTile) != 0 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

const KernelTable& KernelsOf(const std::string& isa) {
  if (isa == "amx") return AmxKernels();
  if (isa == "avx512") return Avx512Kernels();
  if (isa == "avx2") return Avx2Kernels();
  return PortableKernels();
}

const KernelTable& Best() {
  static const KernelTable& best = KernelsOf(AvailableIsas().front());
  return best;
}

}  // namespace

std::vector<std::string> AvailableIsas() {
  std::vector<std::string> isas;
  if (HasAmx()) isas.push_back("amx");
  if (HasAvx512()) isas.push_back("avx512");
  if (HasAvx2()) isas.push_back("avx2");
  isas.push_back("portable");
  return isas;
}

absl::StatusOr<NumericPath> ParseNumericPath(const std::string& name) {
  if (name == "auto") return HasAmx() ? NumericPath::kBf16Tile : NumericPath::kInt8G32;
  if (name == "f32") return NumericPath::kF32;
  if (name == "int8-g32") return NumericPath::kInt8G32;
  if (name == "bf16-tile") return NumericPath::kBf16Tile;
  return absl::InvalidArgumentError(
      absl::StrCat("--numerics=", name, " is unknown: use auto, int8-g32, bf16-tile or f32"));
}

const char* NumericPathName(NumericPath path) {
  switch (path) {
    case NumericPath::kF32:
      return "f32";
    case NumericPath::kInt8G32:
      return "int8-g32";
    case NumericPath::kBf16Tile:
      return "bf16-tile";
  }
  return "unknown";
}

KvType DefaultKvType(NumericPath path) {
  switch (path) {
    case NumericPath::kF32:
      return KvType::kF32;
    case NumericPath::kInt8G32:
      return KvType::kF16;
    case NumericPath::kBf16Tile:
      return KvType::kBF16;
  }
  return KvType::kF32;
}

absl::StatusOr<std::optional<KvType>> ParseKvType(const std::string& name) {
  if (name == "auto") return std::nullopt;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    if (name == KvTypeName(type)) return type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--kv-dtype=", name, " is unknown: use auto, f32, f16, bf16 or int8"));
}

absl::StatusOr<std::unique_ptr<Ops>> MakeCpuOps(const CpuOptions& options) {
  const std::vector<std::string> isas = AvailableIsas();
  const std::string isa = options.isa == "auto" ? isas.front() : options.isa;
  if (std::find(isas.begin(), isas.end(), isa) == isas.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--isa=", options.isa, " is not possible here: use auto, ", absl::StrJoin(isas, ", ")));
  }
  if (options.threads < 0 || options.threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads=", options.threads,
                     " is out of range: use 0 (all that this process may use) to ", kMostThreads));
  }
  const int threads = options.threads == 0 ? AvailableThreads() : options.threads;
  std::vector<int> cpus;
  if (options.pin_threads) {
    cpus = AvailableCpus();
    if (threads > std::ssize(cpus)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--threads is ", threads, " with --pin-threads=on; it must be at most ", cpus.size(),
          ", the cores that this process may use: each thread takes one for itself"));
    }
    cpus.resize(threads);
  }
  const KvType kv_type = options.kv_type.value_or(DefaultKvType(options.path));
  return std::make_unique<CpuOps>(options.path, kv_type, KernelsOf(isa), threads, std::move(cpus));
}

void ExpRow(const float* x, int64_t count, float* out) { Best().exp(x, count, out); }
void OrderScores(const float* x, int64_t count, float* out) { Best().order_scores(x, count, out); }
float HighestScore(const float* x, int64_t count) { return Best().highest_score(x, count); }
void ScaleScores(float* x, int64_t count, float origin, float divisor) {
  Best().scale_scores(x, count, origin, divisor);
}
double SumScores(const float* x, int64_t count, float least) {
  return Best().sum_scores(x, count, least);
}
int64_t SelectScores(const float* x, int64_t count, float least, int32_t* ids) {
  return Best().select_scores(x, count, least, ids);
}

std::vector<int> AvailableCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

int AvailableThreads() {
  const int affinity = static_cast<int>(AvailableCpus().size());
  return std::min(ThreadsWithin(affinity, CgroupCpuQuota("")), kMostThreads);
}

}  // namespace setu::kernels
