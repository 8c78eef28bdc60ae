// SPDX-License-Identifier: Apache-2.0
// How fast the ops are: products by weight type and rows, attention by KV type and rows. Random
// operands (zeros flatter the clock), more weights than the caches of a core hold, and each read
// once per round.
//
//   kernels_bench --benchmark_filter='Linear/int8-g32/Q4_1'
//
// GBps: packed weights (or K and V, with scales) read per second; GOPS: multiplications and
// additions. Each has its share of the peak, probed after: reading weights with all threads, and
// the instruction that the path multiplies weights by (attention: that of f32).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "common/kv/kv_storage.h"
#include "kernels/device.h"

namespace setu::kernels {
namespace {

constexpr int64_t kInputs = 2048, kOutputs = 8192, kMatrices = 16;
constexpr int64_t kHeads = 32, kKvHeads = 8, kDim = 64, kBlock = 16;

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

using Weights = std::vector<std::unique_ptr<PackedMatrix>>;

Weights ManyWeights(Ops& ops, WeightType type) {
  Weights weights;
  for (int64_t i = 0; i < kMatrices; ++i) weights.push_back(RandomWeights(ops, type, i));
  return weights;
}

// The best of a few runs of `run`, which returns what it did: that per second.
double BestRate(const auto& run) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const double done = run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, done / took.count());
  }
  return best;
}

// What an iteration read and computed, as rates and as shares of what `ops` does at most: reading
// `weights`, multiplying by `factor`.
void Report(benchmark::State& state, Ops& ops, const Weights& weights, const PackedMatrix& factor,
            double bytes, double operations) {
  std::vector<const PackedMatrix*> matrices;
  double all_bytes = 0;
  for (const auto& matrix : weights) {
    matrices.push_back(matrix.get());
    all_bytes += static_cast<double>(matrix->bytes());
  }
  const double bandwidth = BestRate([&] { return ops.ProbeReads(matrices), all_bytes; });
  const double arithmetic =
      BestRate([&] { return 2.0 * static_cast<double>(ops.ProbeProducts(factor, 20000)); });
  const auto rate = [&](double per_iteration) {
    return benchmark::Counter(per_iteration * static_cast<double>(state.iterations()),
                              benchmark::Counter::kIsRate);
  };
  state.counters["GBps"] = rate(1e-9 * bytes);
  state.counters["GBps_share"] = rate(bytes / bandwidth);
  state.counters["GOPS"] = rate(1e-9 * operations);
  state.counters["GOPS_share"] = rate(operations / arithmetic);
}

// The same for attention over all of `kv`'s blocks.
void ReportAttention(benchmark::State& state, Ops& ops, const kv::KvStorage& kv, double pairs) {
  Report(state, ops, ManyWeights(ops, WeightType::kQ8_0), *RandomWeights(ops, WeightType::kF32, 1),
         static_cast<double>(kv.blocks()) * static_cast<double>(kv.layout().piece_bytes()),
         4.0 * pairs * kHeads * kDim);
}

void Linear(benchmark::State& state, const std::string& path, const std::string& isa,
            WeightType type) {
  auto ops = MakeCpuOps({.path = *ParseNumericPath(path), .isa = isa, .threads = 0});
  const Weights weights = ManyWeights(**ops, type);
  const int64_t rows = state.range(0);
  const std::vector<float> x = RandomFloats(rows * kInputs);
  std::vector<float> out(rows * kOutputs);
  size_t next = 0;
  for (auto _ : state) {
    const LinearOutput output = {
        weights[next++ % kMatrices].get(), nullptr, {out.data(), rows, kOutputs, kOutputs}, false};
    (*ops)->Linear(ConstMatrix(x.data(), rows, kInputs, kInputs), {&output, 1});
  }
  Report(state, **ops, weights, *weights[0], static_cast<double>(weights[0]->bytes()),
         2.0 * static_cast<double>(rows) * kInputs * kOutputs);
}

const AttentionShape kShape = {kHeads, 1.0f / std::sqrt(64.0f), 0.0f, 0};

// `blocks` blocks of `layers` layers; all sequences of all layers hold the same random tokens.
std::unique_ptr<kv::KvStorage> RandomKv(Ops& ops, int32_t layers, int32_t sequences,
                                        int64_t tokens) {
  const auto blocks = static_cast<int32_t>(tokens / kBlock);
  auto storage = *kv::KvStorage::Create({.block_tokens = kBlock,
                                         .layers = layers,
                                         .kv_heads = kKvHeads,
                                         .head_dim = kDim,
                                         .type = ops.kv_type()},
                                        sequences * blocks);
  std::vector<float> values = RandomFloats(tokens * kKvHeads * kDim);
  const Matrix k = {values.data(), tokens, kKvHeads * kDim, kKvHeads * kDim};
  std::vector<int32_t> ids(blocks);
  std::iota(ids.begin(), ids.end(), 0);
  const SequenceRows all = {0, tokens, 0, ids};
  ops.RopeAndStoreKv({nullptr, tokens, 0, 0}, k, k, {&all, 1}, {}, {nullptr, nullptr, tokens, 0},
                     RopeKind::kHalves, storage->Layer(0));
  for (kv::BlockId block = 0; block < storage->blocks(); ++block) {
    for (int32_t layer = 0; layer < layers; ++layer) {
      if (block >= blocks || layer > 0) {
        std::ranges::copy(storage->Piece(block % blocks, 0), storage->Piece(block, layer).data());
      }
    }
  }
  return storage;
}

// The last `rows` positions of one sequence of 4096.
void Attention(benchmark::State& state, const std::string& path, const std::string& isa,
               KvType type) {
  auto ops =
      *MakeCpuOps({.path = *ParseNumericPath(path), .kv_type = type, .isa = isa, .threads = 0});
  constexpr int64_t kTokens = 4096;
  const int64_t rows = state.range(0);
  const auto storage = RandomKv(*ops, 1, 1, kTokens);
  std::vector<int32_t> blocks(storage->blocks());
  std::iota(blocks.begin(), blocks.end(), 0);
  const std::vector<float> q = RandomFloats(rows * kHeads * kDim);
  std::vector<float> out(q.size());
  const SequenceRows last = {0, rows, kTokens - rows, blocks};
  for (auto _ : state) {
    ops->Attention({q.data(), rows, kHeads * kDim, kHeads * kDim}, {&last, 1}, kShape,
                   storage->Layer(0), {out.data(), rows, kHeads * kDim, kHeads * kDim});
  }
  ReportAttention(state, *ops, *storage, rows * (kTokens - (rows - 1) / 2.0));
}

// One token of each of `batch` sequences of 4096, one layer after another: more KV than an L3
// holds.
void DecodeAttention(benchmark::State& state, const std::string& path, const std::string& isa,
                     KvType type) {
  auto ops =
      *MakeCpuOps({.path = *ParseNumericPath(path), .kv_type = type, .isa = isa, .threads = 0});
  constexpr int64_t kTokens = 4096, kBlocks = kTokens / kBlock;
  const int64_t batch = state.range(0);
  const auto layers = static_cast<int32_t>(64 / batch);
  const auto storage = RandomKv(*ops, layers, static_cast<int32_t>(batch), kTokens);
  std::vector<int32_t> blocks(storage->blocks());
  std::iota(blocks.begin(), blocks.end(), 0);
  std::vector<SequenceRows> sequences;
  for (int64_t i = 0; i < batch; ++i) {
    sequences.push_back({i, 1, kTokens - 1, std::span(blocks).subspan(i * kBlocks, kBlocks)});
  }
  const std::vector<float> q = RandomFloats(batch * kHeads * kDim);
  std::vector<float> out(q.size());
  int32_t layer = 0;
  for (auto _ : state) {
    ops->Attention({q.data(), batch, kHeads * kDim, kHeads * kDim}, sequences, kShape,
                   storage->Layer(layer), {out.data(), batch, kHeads * kDim, kHeads * kDim});
    layer = (layer + 1) % layers;
  }
  ReportAttention(state, *ops, *storage, static_cast<double>(batch * kTokens));
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
    for (const std::string path : {"int8-g32", "bf16-tile"}) {
      for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
        const std::string name = "Attention/" + path + "/" + KvTypeName(type) + "/" + isa;
        benchmark::RegisterBenchmark(name.c_str(), Attention, path, isa, type)
            ->Arg(1)
            ->Arg(256)
            ->Arg(4096)
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("Decode" + name).c_str(), DecodeAttention, path, isa, type)
            ->Arg(1)
            ->Arg(8)
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
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
