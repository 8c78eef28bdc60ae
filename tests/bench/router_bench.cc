// SPDX-License-Identifier: Apache-2.0
// What a router spends on one prompt among many workers: its chain of blocks, the look-up of who
// knows them, and the choice of a pair.
//
//   build/release/test/router_bench --benchmark_min_time=0.2
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "services/router/placement.h"
#include "services/router/prefix_index.h"

namespace setu::router {
namespace {

constexpr int32_t kBlockTokens = 16;

std::vector<int32_t> Ids(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % 49152);
  return ids;
}

void Chain(benchmark::State& state) {
  const std::vector<int32_t> ids = Ids(state.range(0), 1);
  for (auto _ : state) benchmark::DoNotOptimize(kv::Chain(1, ids, kBlockTokens));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Chain)->Arg(512)->Arg(8192);

// Every worker knows the prompt's first half, and 1,000 blocks of its own.
void Known(benchmark::State& state) {
  const std::vector<kv::BlockHash> chain = kv::Chain(1, Ids(1024, 1), kBlockTokens);
  PrefixIndex index;
  std::vector<PrefixIndex::Member> members;
  for (int64_t w = 0; w < state.range(0); ++w) {
    worker::v1::PrefixChanges changes;
    changes.set_snapshot(true);
    changes.mutable_known()->Add(chain.begin(), chain.begin() + std::ssize(chain) / 2);
    for (const kv::BlockHash hash : kv::Chain(2 + w, Ids(16000, 7), kBlockTokens)) {
      changes.add_known(hash);
    }
    members.push_back(index.Join());
    members.back().Apply(changes);
  }
  for (auto _ : state) benchmark::DoNotOptimize(index.Known(chain));
}
BENCHMARK(Known)->Arg(4)->Arg(64)->Arg(512);

// Half of the workers of each role; all busy in their own way.
void Place(benchmark::State& state) {
  std::mt19937 random(1);
  std::vector<WorkerView> prefills(state.range(0) / 2), decodes(state.range(0) / 2);
  for (WorkerView& w : prefills) {
    w.queued_tokens = static_cast<int64_t>(random() % 2000);
    w.tokens_per_second = 1000;
    w.blocks_total = w.blocks_free = 1000;
    w.known_blocks = static_cast<int32_t>(random() % 32);
  }
  for (WorkerView& w : decodes) {
    w.blocks_total = 1000;
    w.blocks_free = static_cast<int64_t>(100 + random() % 900);
    w.running_max = 64;
    w.running = static_cast<int32_t>(random() % 64);
    w.tokens_per_second = 500;
    w.block_bytes = 1 << 18;
  }
  PlacementRequest request{.prompt_tokens = 1024, .tokens_to_come = 128};
  for (auto _ : state) {
    ++request.salt;
    benchmark::DoNotOptimize(router::Place(request, prefills, decodes));
  }
}
BENCHMARK(Place)->Arg(4)->Arg(64)->Arg(512);

}  // namespace
}  // namespace setu::router

BENCHMARK_MAIN();
