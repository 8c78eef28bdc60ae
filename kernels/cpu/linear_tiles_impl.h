// SPDX-License-Identifier: Apache-2.0
// Products of the bf16-tile path on a tile unit (amx_tiles_impl.h; the tests have a model of one).
// A tile is 16 rows of 64 bytes. Activations are the left operand, [16 rows of x][32 k]; a group of
// packed weights becomes the right one as it lies, [16 pairs of k][16 outputs][2]; so sums are rows
// of the output. One step of 32 k multiplies two tiles of rows by a panel, two tiles of weights.
//
// Weights are expanded into the first-level cache, 8 steps of a panel at a time, while the 8 before
// are multiplied with all rows of a pass. Between those the sums wait in `scratch`, which fits the
// second-level cache; up to 32 rows they stay in their tiles.
//
// Tiles: constructed for a number of rows of activations and sums (1 to 16), and
//   Zero(t)  Load(t, from)  LoadOnce(t, from)  Store(t, to)   LoadOnce: from beyond the first level
//   Dot(sum, x, weights)                                      TDPBF16PS
//   static Join(even, odd)   two vectors of floats as pairs of the nearest bfloat16s
#ifndef SETU_KERNELS_CPU_LINEAR_TILES_IMPL_H_
#define SETU_KERNELS_CPU_LINEAR_TILES_IMPL_H_

#include "kernels/cpu/linear_impl.h"

namespace setu::kernels {
namespace {

constexpr int64_t kTileWords = 256;  // 32-bit words of a tile
constexpr int64_t kBlockSteps = 8;
constexpr int64_t kPassTiles = 16;              // tiles of rows of a pass
constexpr int64_t kPairWords = 5 * kTileWords;  // four tiles of sums; 5 KiB apart do not alias
constexpr int64_t kWaitingPanels = 16;          // whose sums wait at once
constexpr int64_t kTilesScratch = kWaitingPanels * kPassTiles / 2 * kPairWords;

constexpr Constant<4> kX0;
constexpr Constant<5> kX1;
constexpr Constant<6> kW0;
constexpr Constant<7> kW1;

// Rounded activations: [blocks of 8 steps][tiles of 16 rows][step][row][32 k], bfloat16. Fewer than
// 16 rows make a shorter tile; the last of several tiles is whole, and what is in rows beyond x
// reaches no output.
struct RoundedRows {
  int64_t steps, tiles, height;

  RoundedRows(int64_t rows, int64_t cols)
      : steps(RoundUpToGroups(cols) / kGroup),
        tiles((rows + kTileRows - 1) / kTileRows),
        height(Smaller(rows, kTileRows)) {}
  int64_t StepsAt(int64_t block) const { return Smaller(kBlockSteps, steps - block); }
  int64_t Offset(int64_t tile, int64_t step) const {  // in bytes
    const int64_t block = step / kBlockSteps * kBlockSteps;
    return (block * tiles + tile * StepsAt(block) + step - block) * height * 64;
  }
};

void RoundRowForTiles(const float* x, int64_t cols, int64_t row, int64_t rows, uint8_t* rounded) {
  const RoundedRows place(rows, cols);
  uint8_t* tile = rounded + row % kTileRows * 64;
  for (int64_t step = 0; step < place.steps; ++step) {
    uint16_t* out = reinterpret_cast<uint16_t*>(tile + place.Offset(row / kTileRows, step));
    for (int64_t k = step * kGroup; k < (step + 1) * kGroup; k += kLanes, out += kLanes) {
      const F32x16 v = k < cols ? LoadPart(x + k, Smaller(kLanes, cols - k)) : Set1(0.0f);
      StoreBfloat(out, WithoutSubnormals(v));
    }
  }
}

template <WeightType kType, class Tiles>
class TileProduct {
 public:
  TileProduct(const LinearArgs& args, float* scratch)
      : args_(args), rows_(args.rows, args.weights.cols), scratch_(scratch), tiles_(rows_.height) {}

  // Outputs 16 begin .. 16 end - 1 of all rows.
  void Run(int64_t begin, int64_t end) {
    for (pass_ = 0; pass_ < rows_.tiles; pass_ += kPassTiles) {
      pass_tiles_ = Smaller(kPassTiles, rows_.tiles - pass_);
      // Sums that need not wait for the next step stay where they are; where the rows of the pass
      // fit the second-level cache, they need wait for no other panel.
      const bool small = pass_tiles_ * rows_.steps * kTileWords * 4 <= 1 << 20;
      const int64_t chunk = 2 * (small ? 1 : kWaitingPanels);
      StartExpansion({begin, 0}, 1);
      FinishExpansion();
      for (int64_t first = begin; first < end; first += chunk) {
        RunChunk({first, Smaller(first + chunk, end)}, end);
      }
    }
  }

 private:
  struct Range {
    int64_t begin, end;  // tiles of weights
  };
  struct Place {
    int64_t tile, block;  // first of the panel; first step of the block
  };

  void RunChunk(Range chunk, int64_t end) {
    const int64_t pairs = (pass_tiles_ + 1) / 2;
    float* done = nullptr;  // where the sums belong that are in the tiles
    for (int64_t block = 0; block < rows_.steps; block += kBlockSteps) {
      for (int64_t tile = chunk.begin; tile < chunk.end; tile += 2) {
        const Place next = After({tile, block}, chunk);
        if (next.tile < end) StartExpansion(next, rows_.StepsAt(block) * pairs);
        const uint32_t* weights = expanded_[1 - expanding_];
        for (int64_t pair = 0; pair < pairs; ++pair) {
          float* sums = Sums((tile - chunk.begin) / 2, pair);
          if (2 * pair + 1 < pass_tiles_) {
            MultiplyBlock<2>(block, pair, weights, done, sums);
          } else {
            MultiplyBlock<1>(block, pair, weights, done, sums);
          }
          done = sums;
        }
        FinishExpansion();
      }
    }
    StoreSums(done);
    for (int64_t tile = chunk.begin; tile < chunk.end; ++tile) FinishTile(tile, chunk);
  }

  float* Sums(int64_t panel, int64_t pair) {
    return scratch_ + (panel * kPassTiles / 2 + pair) * kPairWords;
  }

  // Panels of a chunk take turns at each block of k.
  Place After(Place place, Range chunk) const {
    place.tile += 2;
    if (place.tile >= chunk.end) place = {chunk.begin, place.block + kBlockSteps};
    return place.block < rows_.steps ? place : Place{chunk.end, 0};
  }

  // kRowTiles tiles of rows times one block of a panel. `done` gets the sums of the pair before
  // unless these are the same.
  template <int kRowTiles>
  void MultiplyBlock(int64_t block, int64_t pair, const uint32_t* weights, float* done,
                     float* sums) {
    const int64_t steps = rows_.StepsAt(block);
    const uint8_t* x = args_.rounded + rows_.Offset(pass_ + 2 * pair, block);
    const int64_t tile_bytes = rows_.height * 64;
    // Just before its first product a tile changes its sums, beside the products of the others.
    const auto change = [&]<int64_t kTile>(Constant<kTile> tile) {
      if (done == sums) return;
      if (done != nullptr) tiles_.Store(tile, done + kTile * kTileWords);
      if (kTile >= 2 * kRowTiles) return;
      if (block == 0) {
        tiles_.Zero(tile);
      } else {
        tiles_.Load(tile, sums + kTile * kTileWords);
      }
    };
    MultiplyStep<kRowTiles>(weights, x, x + steps * tile_bytes, change);
    Expand();
    for (int64_t step = 1; step < steps; ++step) {
      MultiplyStep<kRowTiles>(weights + step * 2 * kTileWords, x + step * tile_bytes,
                              x + (steps + step) * tile_bytes, [](auto) {});
      Expand();
    }
  }

  template <int kRowTiles, class Before>
  void MultiplyStep(const uint32_t* weights, const uint8_t* x0, const uint8_t* x1,
                    const Before& before) {
    constexpr Constant<0> kSum00;
    constexpr Constant<1> kSum01;
    constexpr Constant<2> kSum10;
    constexpr Constant<3> kSum11;
    tiles_.Load(kW0, weights);
    LoadRows(kX0, x0);
    before(kSum00);
    tiles_.Dot(kSum00, kX0, kW0);
    tiles_.Load(kW1, weights + kTileWords);
    before(kSum01);
    tiles_.Dot(kSum01, kX0, kW1);
    if constexpr (kRowTiles == 2) LoadRows(kX1, x1);
    before(kSum10);
    if constexpr (kRowTiles == 2) tiles_.Dot(kSum10, kX1, kW0);
    before(kSum11);
    if constexpr (kRowTiles == 2) tiles_.Dot(kSum11, kX1, kW1);
  }

  // Few rows stay in the first level from panel to panel; many would push the weights out of it.
  template <int64_t kTile>
  void LoadRows(Constant<kTile> tile, const uint8_t* x) {
    if (pass_tiles_ <= 2) {
      tiles_.Load(tile, x);
    } else {
      tiles_.LoadOnce(tile, x);
    }
  }

  void StoreSums(float* sums) {
    const auto store = [&]<int kTile>() {
      tiles_.Store(Constant<kTile>{}, sums + kTile * kTileWords);
    };
    Unroll<0, 4>(store);
  }

  void FinishTile(int64_t tile, Range chunk) {
    const int64_t half = (tile - chunk.begin) % 2;
    const int64_t rows = Smaller(args_.rows, (pass_ + pass_tiles_) * kTileRows);
    for (int64_t row = pass_ * kTileRows; row < rows; ++row) {
      const int64_t row_tile = row / kTileRows - pass_;
      const float* sums = Sums((tile - chunk.begin) / 2, row_tile / 2) +
                          (row_tile % 2 * 2 + half) * kTileWords + row % kTileRows * kTileRows;
      FinishOutputs(args_, tile, row, Load(sums));
    }
  }

  // The other half of `expanded_` gets the weights at `place`, in `turns` calls of Expand.
  void StartExpansion(Place place, int64_t turns) {
    place_ = place;
    group_ = 0;
    groups_ = 2 * rows_.StepsAt(place.block);
    due_ = 0;
    due_per_turn_ = (groups_ << kDueBits) / turns;
  }

  void Expand() {
    due_ += due_per_turn_;
    for (; group_ < Smaller(due_ >> kDueBits, groups_); ++group_) ExpandGroup();
  }

  // A panel of one tile, the last, is multiplied as if it had it twice.
  void ExpandGroup() {
    const WeightsView& w = args_.weights;
    const int64_t step = place_.block + group_ / 2;
    const int64_t tile = Smaller(place_.tile + group_ % 2, (w.rows - 1) / kTileRows);
    const uint8_t* from = w.tiles + tile * w.tile_bytes;
    const int64_t bytes = w.tile_bytes * kGroup / w.cols;
    PrefetchAfter(from + step * bytes, bytes);
    ExpandPairs(from, step, Smaller(kGroup, w.cols - step * kGroup),
                expanded_[expanding_] + group_ * kTileWords);
  }

  void FinishExpansion() {
    for (; group_ < groups_; ++group_) ExpandGroup();
    expanding_ = 1 - expanding_;
  }

  // Rounded weights of 32 k in pairs: [16 pairs][16 rows].
  static void ExpandPairs(const uint8_t* tile, int64_t chunk, int64_t count, uint32_t* out) {
    F32x16 even = Set1(0.0f);
    const auto join = [&](int64_t k, F32x16 odd) {
      Store(reinterpret_cast<float*>(out + k / 2 * kTileRows), BitCast(Tiles::Join(even, odd)));
    };
    DequantiseEach<kType>(tile, chunk, count, [&](int64_t k, F32x16 w) {
      if constexpr (!IsQuantised(kType)) w = WithoutSubnormals(w);
      if (k % 2 == 0) {
        even = w;
      } else {
        join(k, w);
      }
    });
    if (count % 2 == 1) join(count, Set1(0.0f));
    for (int64_t k = (count + 1) / 2 * 2; k < kGroup; k += 2) {
      even = Set1(0.0f);
      join(k, even);
    }
  }

  static constexpr int kDueBits = 16;

  const LinearArgs& args_;
  const RoundedRows rows_;
  float* const scratch_;  // kTilesScratch
  Tiles tiles_;
  int64_t pass_ = 0, pass_tiles_ = 0;  // tiles of rows

  // What is expanded: group g is step g / 2 of tile g % 2 of the panel.
  alignas(64) uint32_t expanded_[2][kBlockSteps * 2 * kTileWords];
  int expanding_ = 0;
  Place place_ = {};
  int64_t group_ = 0, groups_ = 0;
  int64_t due_ = 0, due_per_turn_ = 0;  // groups times 2^kDueBits
};

template <class Tiles>
void LinearTiles(const LinearArgs& args, int64_t begin, int64_t end, float* scratch) {
  WithType(args.weights.type,
           [&]<WeightType kType>() { TileProduct<kType, Tiles>(args, scratch).Run(begin, end); });
}

// A probe (probe_impl.h): products of tiles that stay where they are.
template <class Tiles>
int64_t ProbeTiles(const float* operands, int64_t rounds, float* sum) {
  alignas(64) float words[kTileWords];
  for (int64_t row = 0; row < kTileRows; ++row) {
    const auto vector = [&](int64_t i) { return Load(operands + i % kProbeVectors * kLanes); };
    Store(words + row * kLanes, BitCast(Tiles::Join(vector(row), vector(row + row / 8 + 1))));
  }
  Tiles tiles(kTileRows);
  const auto load = [&]<int kTile>() { tiles.Load(Constant<kTile>{}, words); };
  Unroll<4, 8>(load);
  const auto zero = [&]<int kTile>() { tiles.Zero(Constant<kTile>{}); };
  Unroll<0, 4>(zero);
  for (int64_t round = 0; round < rounds; ++round) {
    const auto product = [&]<int kTile>() {
      tiles.Dot(Constant<kTile>{}, Constant<4 + kTile / 2>{}, Constant<6 + kTile % 2>{});
    };
    Unroll<0, 4>(product);
  }
  F32x16 total = Set1(0.0f);
  const auto add = [&]<int kTile>() {
    tiles.Store(Constant<kTile>{}, words);
    for (int64_t row = 0; row < kTileRows; ++row) total = Add(total, Load(words + row * kLanes));
  };
  Unroll<0, 4>(add);
  *sum = ReduceAdd(total);
  return rounds * 4 * kTileRows * kTileRows * kGroup;
}

// The kernels of `table`, with bf16 products on `Tiles`.
template <class Tiles>
constexpr KernelTable WithTiles(KernelTable table) {
  table.linear_bf16 = LinearTiles<Tiles>;
  table.round = RoundRowForTiles;
  table.bf16_scratch = kTilesScratch;
  table.bf16_panel = 2;
  table.probe_bf16 = ProbeTiles<Tiles>;
  return table;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_LINEAR_TILES_IMPL_H_
