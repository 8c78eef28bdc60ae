// SPDX-License-Identifier: Apache-2.0
// Makes the Ops of a device. The only place in kernels/ that can fail: at start.
//
//   auto ops = kernels::MakeCpuOps({.path = NumericPath::kInt8G32, .isa = "auto", .threads = 0});
//   if (!ops.ok()) return ops.status();  // names the flag's value and what this CPU has
#ifndef SETU_KERNELS_DEVICE_H_
#define SETU_KERNELS_DEVICE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/ops.h"

namespace setu::kernels {

struct CpuOptions {
  NumericPath path = NumericPath::kInt8G32;
  std::optional<KvType> kv_type;  // none: DefaultKvType(path)
  std::string isa = "auto";       // auto | portable | avx2 | avx512 | amx
  int threads = 0;                // 0: AvailableThreads()
  bool pin_threads = false;       // each to one of AvailableCpus(), which nobody else uses
};

absl::StatusOr<std::unique_ptr<Ops>> MakeCpuOps(const CpuOptions& options);

// "int8-g32", "bf16-tile" or "f32"; anything else is INVALID_ARGUMENT naming the known ones.
// "auto": bf16-tile on a CPU with AMX, else int8-g32.
absl::StatusOr<NumericPath> ParseNumericPath(const std::string& name);
// The name that ParseNumericPath knows it by.
const char* NumericPathName(NumericPath path);

// What KV is stored as where nobody asks for another type: f32 on f32, f16 on int8-g32,
// bf16 on bf16-tile.
KvType DefaultKvType(NumericPath path);
// "f32", "f16", "bf16" or "int8", which every path may have; anything else is INVALID_ARGUMENT
// naming them. "auto": none, the path's default.
absl::StatusOr<std::optional<KvType>> ParseKvType(const std::string& name);

// ISAs of this machine that MakeCpuOps takes, best first; always ends with "portable".
std::vector<std::string> AvailableIsas();

// That this thread may run on, ascending.
std::vector<int> AvailableCpus();
// min(CPU affinity, whole CPUs of the cgroup v1/v2 quota), at least 1.
int AvailableThreads();

}  // namespace setu::kernels

#endif  // SETU_KERNELS_DEVICE_H_
