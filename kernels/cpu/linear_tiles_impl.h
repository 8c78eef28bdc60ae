// SPDX-License-Identifier: Apache-2.0
// Products of the bf16-tile path on a tile unit (amx_tiles_impl.h; the tests have a model of one).
// A tile is 16 rows of 64 bytes. Weights are the left operand, [16 outputs][32 k], activations the
// right one, [16 pairs of k][16 rows of x][2], so sums are columns of the output.
//
// Few rows (Narrow): weights pass by once, expanded just before they are multiplied, two tiles of
// them with one or both tiles of rows; sums stay in their tiles. Many (Wide): 16 steps of a panel,
// two tiles of weights, are expanded into the first-level cache and multiplied with all rows of a
// pass; between such blocks the sums of some panels wait in `scratch`, which fits the second-level
// cache.
//
// Wide makes two sums at once, with four tiles in use. A core whose other hardware thread is busy
// has few tiles to rename: an instruction that writes one waits for the one before, the longer the
// more of the eight are in use. On an Emerald Rapids so shared a product with its loads took 27 ns
// with eight tiles in use, 12 ns with four; alone 6 ns with either (of zeros: others take longer).
// Narrow with two tiles of rows uses seven: what it saves is their way from the second level.
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

#include "kernels/cpu/exp_impl.h"
#include "kernels/cpu/linear_impl.h"
#include "kernels/cpu/tile_rows_impl.h"
#include "kernels/cpu/tile_weights_impl.h"

namespace setu::kernels {
namespace {

constexpr int64_t kRowBytes = 64;                       // of a tile
constexpr int64_t kTileValues = kTileRows * kGroup;     // of weights in a step
constexpr int64_t kPassTiles = 32;                      // tiles of rows of a pass
constexpr int64_t kSumWords = 2 * kTileWords + kLanes;  // so that neighbours do not alias
constexpr int64_t kWaitingPanels = 16;                  // whose sums wait at once
constexpr int64_t kTilesScratch = kWaitingPanels * kPassTiles * kSumWords;

// Weights are fetched this many steps, at least 2 KiB, before they are expanded: 1 KiB was slower.
template <WeightType kType>
constexpr int64_t kFetchSteps = (2048 + kStepBytes<kType> - 1) / kStepBytes<kType>;

constexpr Constant<0> kSum0;
constexpr Constant<1> kSum1;
constexpr Constant<4> kW;
constexpr Constant<6> kX;

template <WeightType kType, class Tiles>
class TileProduct {
 public:
  TileProduct(const LinearArgs& args, float* scratch)
      : args_(args), rows_(args.rows, args.weights.cols), scratch_(scratch), tiles_(rows_.width) {}

  // Outputs 16 begin .. 16 end - 1 of all rows.
  void Run(int64_t begin, int64_t end) {
    if (args_.up != nullptr) {  // two tiles of weights for one of outputs
      begin *= 2;
      end *= 2;
    }
    if (rows_.tiles == 1) {
      Narrow<1>(begin, end);
    } else if (rows_.tiles == 2) {
      Narrow<2>(begin, end);
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
  struct Place {
    int64_t tile, step;
  };

  // All rows, kXTiles, times two tiles of weights at a time. Weights are expanded kAhead steps
  // before they are multiplied, and scales read before that: so long are stores under way, and no
  // load of tiles, or of a part of a vector, takes their data on the way. Between rows that are
  // expanded stand the instructions of a step's products, so that none waits for the one before,
  // and the fetches of later weights: all at once they would fill what a core can have under way.
  template <int kXTiles>
  void Narrow(int64_t begin, int64_t end) {
    constexpr int64_t kAhead = 3, kRing = 4;
    const int64_t count = (end - begin + 1) / 2 * rows_.steps;
    const auto advance = [&](Place& place) {
      if (++place.step == rows_.steps) place = {place.tile + 2, 0};
    };
    const auto expanded = [&](int64_t i) { return expanded_ + i % kRing * 2 * kTileValues; };
    Place fetching{begin, 0}, reading{begin, 0}, expanding{begin, 0}, now{begin, 0};
    for (int64_t i = 0; i < kFetchSteps<kType>; ++i) advance(fetching);
    for (int64_t i = -kAhead - 1; i < count; ++i) {
      if (i + kAhead + 1 < count) {
        ReadScales(reading, scales_[(i + kAhead + 1) % kRing]);
        advance(reading);
      }
      const int64_t ahead = i + kAhead;
      const bool expands = ahead >= 0 && ahead < count;
      if (expands) {
        for (int t = 0; t < 2; ++t) {
          later_[t] = TileAt(fetching.tile + t) + fetching.step * kStepBytes<kType>;
        }
        advance(fetching);
      }
      if (i < 0) {
        if (expands) {
          Expand(expanding, scales_[ahead % kRing], expanded(ahead),
                 [&]<int kRow>() { FetchAfter<kRow>(); });
          advance(expanding);
        }
        continue;
      }
      if (now.step == 0) ZeroSums<kXTiles>();
      const uint16_t* weights = expanded(i);
      const auto multiply = [&]<int kPart>() { MultiplyPart<kXTiles, kPart>(weights, now.step); };
      if (expands) {
        Expand(expanding, scales_[ahead % kRing], expanded(ahead), [&]<int kRow>() {
          FetchAfter<kRow>();
          Unroll<Due(kRow, kParts<kXTiles>), Due(kRow + 1, kParts<kXTiles>)>(multiply);
        });
        advance(expanding);
      } else {
        Unroll<0, kParts<kXTiles>>(multiply);
      }
      if (now.step + 1 == rows_.steps) {
        StoreSums<kXTiles>(scratch_);
        for (int64_t t = 0; t < kXTiles; ++t) {
          FinishPanel(now.tile, t, end, scratch_ + t * kSumWords);
        }
      }
      advance(now);
    }
  }

  // How many of `parts` come before a row of the two tiles that are expanded.
  static constexpr int Due(int row, int parts) {
    return row * parts / static_cast<int>(2 * kTileRows);
  }
  // The lines of `later_` whose turn is after a row.
  template <int kRow>
  void FetchAfter() const {
    constexpr int kLines = (kStepBytes<kType> + 63) / 64, kTile = kRow / kTileRows;
    for (int line = Due(kRow, 2 * kLines); line < Due(kRow + 1, 2 * kLines); ++line) {
      __builtin_prefetch(later_[kTile] + (line - kTile * kLines) * 64, 0, 3);
    }
  }

  // The instructions of a step's products: the rows, then each tile of weights and what it makes.
  // Rows are in tiles 6 and 7, sum 2 t + w is of rows t and weights w.
  template <int kXTiles>
  static constexpr int kParts = kXTiles + 2 * (1 + kXTiles);
  template <int kXTiles, int kPart>
  void MultiplyPart(const uint16_t* weights, int64_t step) {
    if constexpr (kPart < kXTiles) {
      const uint8_t* x = args_.rounded + rows_.Offset(kPart, step);
      if constexpr (kXTiles == 1) {
        tiles_.Load(kX, x, 4 * rows_.width);
      } else {  // two tiles of rows are too many for the first level
        tiles_.LoadOnce(Constant<6 + kPart>{}, x, kRowBytes);
      }
    } else {
      constexpr int kTile = (kPart - kXTiles) / (1 + kXTiles);
      constexpr int kOf = (kPart - kXTiles) % (1 + kXTiles);
      if constexpr (kOf == 0) {
        tiles_.Load(kW, weights + kTile * kTileValues, kRowBytes);
      } else {
        tiles_.Dot(Constant<2 * (kOf - 1) + kTile>{}, kW, Constant<6 + kOf - 1>{});
      }
    }
  }

  // The weights that are expanded after these products: a line of each tile is fetched at each
  // step.
  struct Ahead {
    const uint8_t* tiles[2];

    void Fetch() {
      for (const uint8_t*& tile : tiles) {
        __builtin_prefetch(tile, 0, 2);
        tile += kRowBytes;
      }
    }
  };
  Ahead AheadOf(const Place& place) const {
    return {GroupAt<kType>(TileAt(place.tile), place.step).block,
            GroupAt<kType>(TileAt(place.tile + 1), place.step).block};
  }

  // The rows of `pass` times some panels, that take turns at each block of k.
  void Wide(Range pass, Range tiles) {
    const auto sums = [&](int64_t tile, int64_t x_tile) {
      return scratch_ + ((tile - tiles.begin) / 2 * kPassTiles + x_tile - pass.begin) * kSumWords;
    };
    for (int64_t block = 0; block < rows_.steps; block += kBlockSteps) {
      for (int64_t tile = tiles.begin; tile < tiles.end; tile += 2) {
        ExpandBlock({tile, block});
        Ahead ahead = AheadOf(tile + 2 < tiles.end ? Place{tile + 2, block}
                                                   : Place{tiles.begin, block + kBlockSteps});
        for (int64_t t = pass.begin; t < pass.end; ++t) {
          MultiplyBlock(block, t, sums(tile, t), ahead);
        }
      }
    }
    // Rows of the output lie on pages of their own: one after the other.
    for (int64_t t = pass.begin; t < pass.end; ++t) {
      for (int64_t tile = tiles.begin; tile < tiles.end; tile += 2) {
        FinishPanel(tile, t, tiles.end, sums(tile, t));
      }
    }
  }

  // Two tiles of outputs, or the one of which they are the halves; `end` cuts off the second.
  void FinishPanel(int64_t tile, int64_t x_tile, int64_t end, const float* sums) {
    if (args_.up != nullptr) return FinishGated(tile / 2, x_tile, sums);
    Finish(tile, x_tile, sums);
    if (tile + 1 < end) Finish(tile + 1, x_tile, sums + kTileWords);
  }

  void ExpandBlock(const Place& from) {
    const int64_t steps = rows_.StepsAt(from.step);
    for (int64_t i = 0; i < steps; ++i) ReadScales({from.tile, from.step + i}, scales_[i]);
    for (int64_t i = 0; i < steps; ++i) {
      Expand({from.tile, from.step + i}, scales_[i], expanded_ + i * 2 * kTileValues, []<int>() {});
    }
  }

  // sums += the expanded block times a tile of rows, which many rows keep beyond the first level.
  void MultiplyBlock(int64_t block, int64_t x_tile, float* sums, Ahead& ahead) {
    if (block == 0) {
      ZeroSums<1>();
    } else {
      tiles_.Load(kSum0, sums, kRowBytes);
      tiles_.Load(kSum1, sums + kTileWords, kRowBytes);
    }
    const uint8_t* x = args_.rounded + rows_.Offset(x_tile, block);
    const uint16_t* weights = expanded_;
    for (int64_t step = 0; step < rows_.StepsAt(block); ++step) {
      tiles_.LoadOnce(kX, x, kRowBytes);
      tiles_.Load(kW, weights, kRowBytes);
      tiles_.Dot(kSum0, kW, kX);
      FetchSums(sums, step);
      ahead.Fetch();
      tiles_.Load(kW, weights + kTileValues, kRowBytes);
      tiles_.Dot(kSum1, kW, kX);
      x += rows_.TileBytes();
      weights += 2 * kTileValues;
    }
    StoreSums<1>(sums);
  }

  // Rows of x displace sums from the first level. A block's first steps fetch the sums of the next
  // tile of rows, its last ones its own again, to be written.
  static void FetchSums(const float* sums, int64_t step) {
    constexpr int64_t kHalf = kBlockSteps / 2, kPart = 2 * kTileWords / kHalf;
    const bool own = step >= kHalf;
    const float* part = (own ? sums : sums + kSumWords) + step % kHalf * kPart;
    for (int64_t i = 0; i < kPart; i += kLanes) {
      own ? __builtin_prefetch(part + i, 1, 3) : __builtin_prefetch(part + i, 0, 3);
    }
  }

  // Of two tiles of weights and kXTiles of rows.
  template <int kXTiles>
  void ZeroSums() {
    const auto zero = [&]<int kSum>() { tiles_.Zero(Constant<kSum>{}); };
    Unroll<0, 2 * kXTiles>(zero);
  }
  template <int kXTiles>
  void StoreSums(float* sums) {
    const auto store = [&]<int kSum>() {
      tiles_.Store(Constant<kSum>{}, sums + kSum / 2 * kSumWords + kSum % 2 * kTileWords);
    };
    Unroll<0, 2 * kXTiles>(store);
  }

  // Beyond the last counts as the last. With `up` the tiles of both take turns.
  const uint8_t* TileAt(int64_t tile) const {
    const bool both = args_.up != nullptr;
    const uint8_t* tiles = both && tile % 2 == 1 ? args_.up : args_.weights.tiles;
    const int64_t last = (args_.weights.rows - 1) / kTileRows;
    return tiles + Smaller(both ? tile / 2 : tile, last) * args_.weights.tile_bytes;
  }

  void ReadScales(const Place& at, TileScales* scales) const {
    for (int i = 0; i < 2; ++i) {
      ReadTileScales<kType>(GroupAt<kType>(TileAt(at.tile + i), at.step), scales[i]);
    }
  }

  // After each row of the two tiles: after<row>().
  template <class After>
  [[gnu::always_inline]] void Expand(const Place& place, const TileScales* scales, uint16_t* out,
                                     const After& after) const {
    const auto expand = [&]<int kTile>() {
      const auto row_done = [&]<int kRow>() {
        after.template operator()<kTile * kTileRows + kRow>();
      };
      ExpandGroup<kType, Tiles>(GroupAt<kType>(TileAt(place.tile + kTile), place.step),
                                scales[kTile], out + kTile * kTileValues, row_done);
    };
    Unroll<0, 2>(expand);
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

  // Of a tile of `weights` and of `up`: sums lie as the product after takes its rows, by pairs of
  // k.
  void FinishGated(int64_t tile, int64_t x_tile, const float* sums) {
    alignas(64) static constexpr uint16_t kTurns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const I32x16 turns = LoadBytes(reinterpret_cast<const uint8_t*>(kTurns));
    const RoundedRows next(args_.rows, args_.weights.rows);
    constexpr int64_t kHalf = kTileRows / 2;  // pairs that a tile of outputs makes
    const int64_t pair_bytes = 4 * next.width;
    uint8_t* out = args_.gated + next.Offset(x_tile, tile / 2) + tile % 2 * kHalf * pair_bytes;
    const auto gated = [&](int64_t output) {
      const float* gate = sums + output * kLanes;
      return WithoutSubnormals(Mul(SiluOf(Load(gate)), Load(gate + kTileWords)));
    };
    const auto put = [&](int64_t pair, I32x16 words) {
      StorePart(reinterpret_cast<float*>(out + pair * pair_bytes), BitCast(words), next.width);
    };
    for (int64_t pair = 0; pair < kHalf; ++pair) {
      put(pair, Tiles::Lookup(Tiles::Join(gated(2 * pair), gated(2 * pair + 1)), turns));
    }
    const bool last = (tile + 1) * kTileRows >= args_.weights.rows;
    if (!last || tile % 2 != 0) return;
    for (int64_t pair = kHalf; pair < 2 * kHalf; ++pair) put(pair, Set1I(0));
  }

  const LinearArgs& args_;
  const RoundedRows rows_;
  float* const scratch_;  // kTilesScratch
  Tiles tiles_;
  const uint8_t* later_[2];  // weights that Narrow fetches; no local, as registers are scarce
  TileScales scales_[kBlockSteps][2];
  alignas(64) uint16_t expanded_[kBlockSteps * 2 * kTileValues];  // [step][tile][row][32 k]
};

template <class Tiles>
void LinearTiles(const LinearArgs& args, int64_t begin, int64_t end, float* scratch) {
  WithType(args.weights.type,
           [&]<WeightType kType>() { TileProduct<kType, Tiles>(args, scratch).Run(begin, end); });
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_LINEAR_TILES_IMPL_H_
