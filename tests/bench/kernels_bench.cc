// SPDX-License-Identifier: Apache-2.0
// How fast the ops are: products by weight type and rows, attention by rows. Random operands (zeros
// flatter the clock), more weights than the caches of a core hold, and each read once per round.
//
//   kernels_bench --benchmark_filter='Linear/int8-g32/Q4_1'
//
// GBps: packed weights (or K and V) read per second; GOPS: multiplications and additions.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/device.h"

namespace setu::kernels {
namespace {

constexpr int64_t kInputs = 2048, kOutputs = 8192, kMatrices = 16;

std::vector<float> RandomFloats(int64_t count) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float& v : values) v = uniform(engine);
  return values;
}

// Random quants; every f16 is 2^-7 or so, which bytes below 0x20 in odd places make sure of.
std::unique_ptr<PackedMatrix> RandomWeights(Ops& ops, WeightType type, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::byte> bytes(RowBytes(type, kInputs) * kOutputs);
  for (std::byte& b : bytes) b = static_cast<std::byte>(engine());
  for (size_t at = 0; at < bytes.size(); at += BlockBytes(type)) {
    for (const size_t offset : {at + 1, at + 3}) bytes[offset] = std::byte{0x20};
  }
  return ops.Pack({type, kOutputs, kInputs, bytes.data()});
}

void Linear(benchmark::State& state, const std::string& path, const std::string& isa,
            WeightType type) {
  auto ops = MakeCpuOps({.path = *ParseNumericPath(path), .isa = isa, .threads = 0});
  std::vector<std::unique_ptr<PackedMatrix>> weights;
  for (int64_t i = 0; i < kMatrices; ++i) weights.push_back(RandomWeights(**ops, type, i));
  const int64_t rows = state.range(0);
  const std::vector<float> x = RandomFloats(rows * kInputs);
  std::vector<float> out(rows * kOutputs);
  size_t next = 0;
  for (auto _ : state) {
    const LinearOutput output = {
        weights[next++ % kMatrices].get(), nullptr, {out.data(), rows, kOutputs, kOutputs}, false};
    (*ops)->Linear(ConstMatrix(x.data(), rows, kInputs, kInputs), {&output, 1});
  }
  const double products = static_cast<double>(state.iterations()) * kInputs * kOutputs;
  state.counters["GBps"] = benchmark::Counter(1e-9 * state.iterations() * weights[0]->bytes(),
                                              benchmark::Counter::kIsRate);
  state.counters["GOPS"] = benchmark::Counter(2e-9 * products * rows, benchmark::Counter::kIsRate);
}

// The last `rows` positions of one sequence of 2048: 32 heads of 64, 8 KV heads.
void Attention(benchmark::State& state, const std::string& isa) {
  auto ops = MakeCpuOps({.path = NumericPath::kInt8G32, .isa = isa, .threads = 0});
  constexpr int64_t kHeads = 32, kKvHeads = 8, kDim = 64, kTokens = 2048, kBlock = 16;
  const int64_t rows = state.range(0);
  const size_t block_bytes = 2 * kKvHeads * kBlock * kDim * 2;
  std::vector<std::byte> memory(block_bytes * (kTokens / kBlock));
  std::vector<int32_t> blocks(kTokens / kBlock);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int32_t>(i);
  const KvLayer kv = {memory.data(), block_bytes, KvType::kF16, kKvHeads, kDim, kBlock};
  std::vector<float> keys = RandomFloats(kTokens * kKvHeads * kDim);
  const Matrix k = {keys.data(), kTokens, kKvHeads * kDim, kKvHeads * kDim};
  const SequenceRows all = {0, kTokens, 0, blocks};
  const RopeTable no_turn = {nullptr, nullptr, kTokens, 0};
  (*ops)->RopeAndStoreKv({nullptr, kTokens, 0, 0}, k, k, {&all, 1}, {}, no_turn, RopeKind::kHalves,
                         kv);
  const std::vector<float> q = RandomFloats(rows * kHeads * kDim);
  std::vector<float> out(q.size());
  const SequenceRows last = {0, rows, kTokens - rows, blocks};
  const AttentionShape shape = {kHeads, 1.0f / std::sqrt(64.0f), 0.0f, 0};
  for (auto _ : state) {
    (*ops)->Attention({q.data(), rows, kHeads * kDim, kHeads * kDim}, {&last, 1}, shape, kv,
                      {out.data(), rows, kHeads * kDim, kHeads * kDim});
  }
  const double iterations = static_cast<double>(state.iterations());
  const double pairs = rows * (kTokens - (rows - 1) / 2.0);
  state.counters["GBps"] =
      benchmark::Counter(1e-9 * iterations * memory.size(), benchmark::Counter::kIsRate);
  state.counters["GOPS"] =
      benchmark::Counter(4e-9 * iterations * pairs * kHeads * kDim, benchmark::Counter::kIsRate);
}

void Register() {
  for (const std::string& isa : AvailableIsas()) {
    if (isa == "portable") continue;
    for (const std::string path : {"int8-g32", "bf16-tile", "f32"}) {
      for (const WeightType type : {WeightType::kQ4_1, WeightType::kQ8_0, WeightType::kQ6_K}) {
        const std::string name = "Linear/" + path + "/" + WeightTypeName(type) + "/" + isa;
        benchmark::RegisterBenchmark(name.c_str(), Linear, path, isa, type)
            ->Arg(1)
            ->Arg(4)
            ->Arg(16)
            ->Arg(512)
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
    benchmark::RegisterBenchmark(("Attention/" + isa).c_str(), Attention, isa)
        ->Arg(1)
        ->Arg(256)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace setu::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  setu::kernels::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
