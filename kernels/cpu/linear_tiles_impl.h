// SPDX-License-Identifier: Apache-2.0
// Products of the bf16-tile path on a tile unit (amx_tiles_impl.h; the tests have a model of one).
// A tile is 16 rows of 64 bytes. Weights are the left operand, [16 outputs][32 k], activations the
// right one, [16 pairs of k][16 rows of x][2], so sums are columns of the output. One step of 32 k
// multiplies a panel, two tiles of weights, by two tiles of rows.
//
// Few rows (Narrow): weights pass by once, expanded just before they are multiplied; sums stay in
// their tiles. Many (Wide): 16 steps of a panel are expanded into the first-level cache and
// multiplied with all rows of a pass; between such blocks the sums of some panels wait in
// `scratch`, which fits the second-level cache.
//
// Tiles: constructed for a number of rows of x in a tile (1 to 16), and
//   Zero(t)  Load(t, from, stride)  LoadOnce(t, from, stride)  Store(t, to)   LoadOnce: from beyond
//                                                                        the first level
//   Dot(sum, left, right)                                      TDPBF16PS
// over vectors of 32 words (I32x16):
//   Join(low, high)        sixteen and sixteen floats as the nearest bfloat16s, ties to even
//   JoinAway(even, odd)    the same in turns, ties away from zero
//   Lookup(table, index)   by the low five bits of each word
//   ShiftWords<n>(words)   to the right, or by -n to the left
//   Halves(low, high)      a float eight times, then the other
//   Transpose(words)       16 x 16 32-bit words, in place
#ifndef SETU_KERNELS_CPU_LINEAR_TILES_IMPL_H_
#define SETU_KERNELS_CPU_LINEAR_TILES_IMPL_H_

#include "kernels/cpu/linear_impl.h"
#include "kernels/cpu/tile_weights_impl.h"

namespace setu::kernels {
namespace {

constexpr int64_t kTileWords = 256;                  // 32-bit words of a tile
constexpr int64_t kTileValues = kTileRows * kGroup;  // of weights in a step
constexpr int64_t kBlockSteps = 16;
constexpr int64_t kPassTiles = 32;              // tiles of rows of a pass
constexpr int64_t kPairWords = 5 * kTileWords;  // four tiles of sums; 5 KiB apart do not alias
constexpr int64_t kWaitingPanels = 16;          // whose sums wait at once
constexpr int64_t kTilesScratch = kWaitingPanels * kPassTiles / 2 * kPairWords;
constexpr int64_t kNarrowTiles = 2;

constexpr Constant<0> kSum0;
constexpr Constant<1> kSum1;
constexpr Constant<2> kSum2;
constexpr Constant<3> kSum3;
constexpr Constant<4> kW0;
constexpr Constant<5> kW1;
constexpr Constant<6> kX0;
constexpr Constant<7> kX1;

// Rounded activations: [blocks of 16 steps][tiles of 16 rows][step][pair of k][row][2], bfloat16.
// Fewer than 16 rows make a narrower tile; the last of several tiles is whole, and what is in rows
// beyond x reaches no output.
struct RoundedRows {
  int64_t steps, tiles, width;

  RoundedRows(int64_t rows, int64_t cols)
      : steps(RoundUpToGroups(cols) / kGroup),
        tiles((rows + kTileRows - 1) / kTileRows),
        width(Smaller(rows, kTileRows)) {}
  int64_t StepsAt(int64_t block) const { return Smaller(kBlockSteps, steps - block); }
  int64_t TileBytes() const { return width * 64; }
  int64_t Offset(int64_t tile, int64_t step) const {  // in bytes
    const int64_t block = step / kBlockSteps * kBlockSteps;
    return (block * tiles + tile * StepsAt(block) + step - block) * TileBytes();
  }
};

template <class Tiles>
void RoundRowsForTiles(const float* x, int64_t x_stride, int64_t cols, int64_t row, int64_t count,
                       int64_t rows, uint8_t* rounded) {
  const RoundedRows place(rows, cols);
  alignas(64) uint32_t words[kTileWords] = {};  // [row][pair of k]
  for (int64_t step = 0; step < place.steps; ++step) {
    const auto half = [&](int64_t i, int64_t k) {
      return k < cols ? WithoutSubnormals(LoadPart(x + i * x_stride + k, cols - k)) : Set1(0.0f);
    };
    for (int64_t i = 0; i < count; ++i) {
      const I32x16 pairs = Tiles::Join(half(i, step * kGroup), half(i, step * kGroup + kLanes));
      Store(reinterpret_cast<float*>(words + i * kLanes), BitCast(pairs));
    }
    uint32_t* tile = reinterpret_cast<uint32_t*>(rounded + place.Offset(row / kTileRows, step));
    if (count == 1) {
      for (int64_t pair = 0; pair < kLanes; ++pair) {
        tile[pair * place.width + row % kTileRows] = words[pair];
      }
    } else {
      Tiles::Transpose(words, tile);
    }
  }
}

template <WeightType kType, class Tiles>
class TileProduct {
 public:
  TileProduct(const LinearArgs& args, float* scratch)
      : args_(args), rows_(args.rows, args.weights.cols), scratch_(scratch), tiles_(rows_.width) {}

  // Outputs 16 begin .. 16 end - 1 of all rows.
  void Run(int64_t begin, int64_t end) {
    if (rows_.tiles == 1) {
      Narrow<4, 1>(begin, end);
    } else if (rows_.tiles <= kNarrowTiles) {
      Narrow<2, 2>(begin, end);
    } else {
      for (int64_t pass = 0; pass < rows_.tiles; pass += kPassTiles) {
        for (int64_t tile = begin; tile < end; tile += 2 * kWaitingPanels) {
          Wide({pass, Smaller(pass + kPassTiles, rows_.tiles)},
               {tile, Smaller(tile + 2 * kWaitingPanels, end)});
        }
      }
    }
  }

 private:
  struct Range {
    int64_t begin, end;  // tiles
  };
  // All rows, kTiles tiles of weights at a time. Weights are expanded kAhead steps before they are
  // multiplied, and scales read before that: so long are stores under way, and no load of tiles, or
  // of a part of a vector, takes their data on the way.
  template <int kTiles, int kXTiles>
  void Narrow(int64_t begin, int64_t end) {
    constexpr int64_t kAhead = 3, kRing = 4;
    const auto expand = [&](int64_t tile, int64_t step) {
      if (step + 1 < rows_.steps) ReadScales<kTiles>(tile, step + 1, scales_[(step + 1) % kRing]);
      if (step < 0 || step >= rows_.steps) return;
      Expand<kTiles>(tile, step, scales_[step % kRing],
                     expanded_ + step % kRing * kTiles * kTileValues);
    };
    for (int64_t tile = begin; tile < end; tile += kTiles) {
      for (int64_t step = -1; step < kAhead; ++step) expand(tile, step);
      ZeroSums<kTiles * kXTiles>();
      for (int64_t step = 0; step < rows_.steps; ++step) {
        expand(tile, step + kAhead);
        const uint16_t* weights = expanded_ + step % kRing * kTiles * kTileValues;
        const uint8_t* x = args_.rounded + rows_.Offset(0, step);
        if constexpr (kXTiles == 1) {
          MultiplyRow(weights, x);
        } else {
          const int64_t steps = rows_.StepsAt(step / kBlockSteps * kBlockSteps);
          Multiply<kXTiles>(weights, x, x + steps * rows_.TileBytes(), [](auto) {});
        }
      }
      StoreSums(scratch_);
      for (int64_t t = 0; t < kXTiles; ++t) {
        for (int64_t i = 0; i < Smaller(kTiles, end - tile); ++i) {
          Finish(tile + i, t, scratch_ + (t * kTiles + i) * kTileWords);
        }
      }
    }
  }

  // The rows of `pass` times some panels, that take turns at each block of k.
  void Wide(Range pass, Range tiles) {
    float* done = nullptr;  // where the sums belong that are in the tiles
    for (int64_t block = 0; block < rows_.steps; block += kBlockSteps) {
      for (int64_t tile = tiles.begin; tile < tiles.end; tile += 2) {
        for (int64_t step = 0; step < rows_.StepsAt(block); ++step) {
          ReadScales<2>(tile, block + step, scales_[step]);
        }
        for (int64_t step = 0; step < rows_.StepsAt(block); ++step) {
          Expand<2>(tile, block + step, scales_[step], expanded_ + step * 2 * kTileValues);
        }
        for (int64_t t = pass.begin; t < pass.end; t += 2) {
          float* sums = Sums((tile - tiles.begin) / 2, (t - pass.begin) / 2);
          if (t + 1 < pass.end) {
            MultiplyBlock<2>(block, t, done, sums);
          } else {
            MultiplyBlock<1>(block, t, done, sums);
          }
          done = sums;
        }
      }
    }
    StoreSums(done);
    // Rows of the output lie on pages of their own: one after the other.
    for (int64_t t = pass.begin; t < pass.end; ++t) {
      for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
        const int64_t place = (t - pass.begin) % 2 * 2 + (tile - tiles.begin) % 2;
        Finish(tile, t, Sums((tile - tiles.begin) / 2, (t - pass.begin) / 2) + place * kTileWords);
      }
    }
  }

  float* Sums(int64_t panel, int64_t pair) {
    return scratch_ + (panel * kPassTiles / 2 + pair) * kPairWords;
  }

  // A block of the expanded panel times kXTiles tiles of rows. `done` gets the sums of the pair
  // before, unless these are the same.
  template <int kXTiles>
  void MultiplyBlock(int64_t block, int64_t x_tile, float* done, float* sums) {
    const int64_t steps = rows_.StepsAt(block), bytes = rows_.TileBytes();
    const uint8_t* x = args_.rounded + rows_.Offset(x_tile, block);
    // Just before its first product a tile changes its sums, beside the products of the others.
    const auto change = [&]<int64_t kTile>(Constant<kTile> tile) {
      if (done == sums) return;
      if (done != nullptr) tiles_.Store(tile, done + kTile * kTileWords);
      if (kTile >= 2 * kXTiles) return;
      if (block == 0) {
        tiles_.Zero(tile);
      } else {
        tiles_.Load(tile, sums + kTile * kTileWords, 64);
      }
    };
    Multiply<kXTiles>(expanded_, x, x + steps * bytes, change);
    for (int64_t step = 1; step < steps; ++step) {
      Multiply<kXTiles>(expanded_ + step * 2 * kTileValues, x + step * bytes,
                        x + (steps + step) * bytes, [](auto) {});
    }
  }

  template <int kXTiles, class Before>
  void Multiply(const uint16_t* panel, const uint8_t* x0, const uint8_t* x1, const Before& before) {
    tiles_.Load(kW0, panel, 64);
    LoadRows<kXTiles>(kX0, x0);
    before(kSum0);
    tiles_.Dot(kSum0, kW0, kX0);
    tiles_.Load(kW1, panel + kTileValues, 64);
    before(kSum1);
    tiles_.Dot(kSum1, kW1, kX0);
    if constexpr (kXTiles == 2) LoadRows<kXTiles>(kX1, x1);
    before(kSum2);
    if constexpr (kXTiles == 2) tiles_.Dot(kSum2, kW0, kX1);
    before(kSum3);
    if constexpr (kXTiles == 2) tiles_.Dot(kSum3, kW1, kX1);
  }

  // Few rows stay in the first level from panel to panel; many would push the weights out of it.
  template <int kXTiles, int64_t kTile>
  void LoadRows(Constant<kTile> tile, const uint8_t* x) {
    if (rows_.tiles <= kNarrowTiles) {
      tiles_.Load(tile, x, 4 * rows_.width);
    } else {
      tiles_.LoadOnce(tile, x, 64);
    }
  }

  template <int kSums>
  void ZeroSums() {
    const auto zero = [&]<int kTile>() { tiles_.Zero(Constant<kTile>{}); };
    Unroll<0, kSums>(zero);
  }

  // Four tiles of weights times one tile of rows.
  void MultiplyRow(const uint16_t* weights, const uint8_t* x) {
    tiles_.Load(kX0, x, 4 * rows_.width);
    tiles_.Load(kW0, weights, 64);
    tiles_.Dot(kSum0, kW0, kX0);
    tiles_.Load(kW1, weights + kTileValues, 64);
    tiles_.Dot(kSum1, kW1, kX0);
    tiles_.Load(kW0, weights + 2 * kTileValues, 64);
    tiles_.Dot(kSum2, kW0, kX0);
    tiles_.Load(kW1, weights + 3 * kTileValues, 64);
    tiles_.Dot(kSum3, kW1, kX0);
  }

  void StoreSums(float* sums) {
    const auto store = [&]<int kTile>() {
      tiles_.Store(Constant<kTile>{}, sums + kTile * kTileWords);
    };
    Unroll<0, 4>(store);
  }

  // One beyond the last counts as the last.
  const uint8_t* TileAt(int64_t tile) const {
    const int64_t last = (args_.weights.rows - 1) / kTileRows;
    return args_.weights.tiles + Smaller(tile, last) * args_.weights.tile_bytes;
  }

  template <int kTiles>
  void ReadScales(int64_t tile, int64_t step, TileScales* scales) const {
    for (int i = 0; i < kTiles; ++i) {
      ReadTileScales<kType>(GroupAt<kType>(TileAt(tile + i), step), scales[i]);
    }
  }

  template <int kTiles>
  void Expand(int64_t tile, int64_t step, const TileScales* scales, uint16_t* out) const {
    for (int i = 0; i < kTiles; ++i) {
      const TileGroup<kType> at = GroupAt<kType>(TileAt(tile + i), step);
      PrefetchAfter(at.group, kStepBytes<kType>);
      ExpandGroup<kType, Tiles>(at, scales[i], out + i * kTileValues);
    }
  }

  // Outputs of `tile` for the rows of `x_tile`, of which `sums` are the transpose.
  void Finish(int64_t tile, int64_t x_tile, const float* sums) {
    alignas(64) uint32_t rows[kTileWords];
    Tiles::Transpose(reinterpret_cast<const uint32_t*>(sums), rows);
    const int64_t first = x_tile * kTileRows;
    for (int64_t row = first; row < Smaller(args_.rows, first + kTileRows); ++row) {
      FinishOutputs(args_, tile, row,
                    Load(reinterpret_cast<const float*>(rows) + (row - first) * kTileRows));
    }
  }

  const LinearArgs& args_;
  const RoundedRows rows_;
  float* const scratch_;  // kTilesScratch
  Tiles tiles_;
  TileScales scales_[kBlockSteps][4];
  alignas(64) uint16_t expanded_[kBlockSteps * 2 * kTileValues];  // [step][tile][row][32 k]
};

template <class Tiles>
void LinearTiles(const LinearArgs& args, int64_t begin, int64_t end, float* scratch) {
  WithType(args.weights.type,
           [&]<WeightType kType>() { TileProduct<kType, Tiles>(args, scratch).Run(begin, end); });
}

// A probe (probe_impl.h): products of tiles as they come from the first-level cache, each used
// twice.
template <class Tiles>
int64_t ProbeTiles(const float* operands, int64_t rounds, float* sum) {
  constexpr int64_t kSteps = 4;
  alignas(64) uint32_t words[kSteps][4][kTileWords];
  for (int64_t i = 0; i < kSteps * 4 * kTileRows; ++i) {
    const auto vector = [&](int64_t at) { return Load(operands + at % kProbeVectors * kLanes); };
    Store(reinterpret_cast<float*>(words) + i * kLanes,
          BitCast(Tiles::Join(vector(i), vector(i + i / 8 + 1))));
  }
  Tiles tiles(kTileRows);
  const auto zero = [&]<int kTile>() { tiles.Zero(Constant<kTile>{}); };
  Unroll<0, 4>(zero);
  for (int64_t round = 0; round < rounds; ++round) {
    const auto& step = words[round % kSteps];
    tiles.Load(kW0, step[0], 64);
    tiles.Load(kX0, step[1], 64);
    tiles.Dot(kSum0, kW0, kX0);
    tiles.Load(kW1, step[2], 64);
    tiles.Dot(kSum1, kW1, kX0);
    tiles.Load(kX1, step[3], 64);
    tiles.Dot(kSum2, kW0, kX1);
    tiles.Dot(kSum3, kW1, kX1);
  }
  F32x16 total = Set1(0.0f);
  const auto add = [&]<int kTile>() {
    float sums[kTileWords];
    tiles.Store(Constant<kTile>{}, sums);
    for (int64_t row = 0; row < kTileRows; ++row) total = Add(total, Load(sums + row * kLanes));
  };
  Unroll<0, 4>(add);
  *sum = ReduceAdd(total);
  return rounds * 4 * kTileRows * kTileRows * kGroup;
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
  table.bf16_panel = 4;
  table.embed = EmbedOfAnyOrder;
  table.probe_bf16 = ProbeTiles<Tiles>;
  return table;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_LINEAR_TILES_IMPL_H_
