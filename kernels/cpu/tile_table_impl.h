// SPDX-License-Identifier: Apache-2.0
// A table whose bf16 products are made on a tile unit (linear_tiles_impl.h), and the probe of one.
#ifndef SETU_KERNELS_CPU_TILE_TABLE_IMPL_H_
#define SETU_KERNELS_CPU_TILE_TABLE_IMPL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/linear_tiles_impl.h"
#include "kernels/cpu/probe_impl.h"

namespace setu::kernels {
namespace {

// A probe (probe_impl.h): products of tiles as they come from the first-level cache, as Wide makes
// them.
template <class Tiles>
int64_t ProbeTiles(const float* operands, int64_t rounds, float* sum) {
  constexpr int64_t kSteps = 4;
  alignas(64) uint32_t words[kSteps][3][kTileWords];
  for (int64_t i = 0; i < kSteps * 3 * kTileRows; ++i) {
    const auto vector = [&](int64_t at) { return Load(operands + at % kProbeVectors * kLanes); };
    Store(reinterpret_cast<float*>(words) + i * kLanes,
          BitCast(Tiles::Join(vector(i), vector(i + i / 8 + 1))));
  }
  Tiles tiles(kTileRows);
  tiles.Zero(kSum0);
  tiles.Zero(kSum1);
  for (int64_t round = 0; round < rounds; ++round) {
    const auto& step = words[round % kSteps];
    tiles.Load(kX, step[0], kRowBytes);
    tiles.Load(kW, step[1], kRowBytes);
    tiles.Dot(kSum0, kW, kX);
    tiles.Load(kW, step[2], kRowBytes);
    tiles.Dot(kSum1, kW, kX);
  }
  F32x16 total = Set1(0.0f);
  const auto add = [&]<int kTile>() {
    float sums[kTileWords];
    tiles.Store(Constant<kTile>{}, sums);
    for (int64_t row = 0; row < kTileRows; ++row) total = Add(total, Load(sums + row * kLanes));
  };
  Unroll<0, 2>(add);
  *sum = ReduceAdd(total);
  return rounds * 2 * kTileRows * kTileRows * kGroup;
}

void EmbedOfAnyOrder(const WeightsView& table, int64_t row, float* out) {
  table.order == PackOrder::kTiles ? EmbedOfTiles(table, row, out) : Embed(table, row, out);
}

// The kernels of `table`, with bf16 products on `Tiles`.
template <class Tiles>
constexpr KernelTable WithTiles(KernelTable table) {
  table.linear_bf16 = LinearTiles<Tiles>;
  table.round = RoundRowsForTiles<Tiles>;
  table.round_rows = kTileRows;
  table.bf16_order = PackOrder::kTiles;
  table.bf16_scratch = kTilesScratch;
  table.bf16_panel = 2;
  table.bf16_share = 16;
  table.bf16_gates = true;
  table.embed = EmbedOfAnyOrder;
  table.probe_bf16 = ProbeTiles<Tiles>;
  return table;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_TILE_TABLE_IMPL_H_
