// SPDX-License-Identifier: Apache-2.0
// Attention of the bf16-tile path over K and V in bf16 or int8, by products of bfloat16s on tiles
// (amx_tiles_impl.h; lane_tiles_impl.h does the same by fma). Queries are rounded, sixteen of a KV
// head to a tile. A score is a sum as of linear_bf16_impl.h over the dims, of int8 times its key's
// scale. Tiles of kPairKeyTile keys are anchored at position 0; in each, per query:
//
//   highest = max(scores) * factor, where factor = scale * log2(e)
//   if highest > shift + kSlack: sums and out *= 2^(shift - highest), shift = highest
//   p = 2^fma(score, factor, -shift), 0 of a masked key
//   sums[key % 16] += p, keys ascending
//   out += as of linear_bf16_impl.h over the keys: p (int8: * its value's scale), rounded, * value
//
// and at the end out / sum of sums, by the fixed tree. With a soft cap scores are scaled and capped
// first, and factor is log2(e). So that sums need not shrink again and again, p may reach
// 2^kSlack, which costs no precision.
#ifndef SETU_KERNELS_CPU_ATTENTION_TILES_IMPL_H_
#define SETU_KERNELS_CPU_ATTENTION_TILES_IMPL_H_

#include "kernels/cpu/attention_impl.h"
#include "kernels/cpu/exp2_impl.h"
#include "kernels/cpu/kv_pairs_impl.h"

namespace setu::kernels {
namespace {

constexpr float kLog2E = 0x1.715476p+0f, kSlack = 8.0f;

template <KvType kType, class Tiles>
class TileAttention {
 public:
  TileAttention(const AttentionArgs& args, const AttentionPiece& piece, float* scratch)
      : args_(args),
        piece_(piece),
        group_(args.heads / args.kv_heads),
        queries_(piece.rows * group_),
        padded_(PaddedQueries(queries_)),
        height_(Smaller(queries_, kLanes)),
        steps_((args.head_dim + 31) / 32),
        units_((args.head_dim + kLanes - 1) / kLanes),
        factor_(args.soft_cap == 0.0f ? args.scale * kLog2E : kLog2E),
        oldest_(args.window > 0 ? Larger(0, args.start + piece.first - args.window + 1) : 0),
        newest_(args.start + piece.first + piece.rows - 1),
        fetched_(LinesPerFetch()),
        tiles_(kLanes, height_) {
    Divide(scratch);
  }

  void Run() {
    KeyPlaces here = Places(oldest_ / kPairKeyTile);
    Prepare({here, 0});
    for (int64_t tile = oldest_ / kPairKeyTile; tile * kPairKeyTile <= newest_; ++tile) {
      const KeyPlaces next = Places(tile + 1);
      for (int64_t head = 0; head + 1 < piece_.kv_heads; ++head) {
        Visit({here, head}, {here, head + 1});
      }
      Visit({here, piece_.kv_heads - 1}, {next, 0});
      here = next;
    }
    Finish();
  }

 private:
  static constexpr Constant<4> kLeft{};
  static constexpr Constant<6> kRight{};
  static constexpr int64_t kRowBytes = 64;  // of every tile
  static constexpr int64_t kValueSteps = kPairKeyTile / 32;

  // A tile of keys of one KV head, the piece's number `head`.
  struct Unit {
    const KeyPlaces& places;
    int64_t head;
  };

  // So that a unit's are fetched while one tile of queries meets another.
  int64_t LinesPerFetch() const {
    const int64_t lines = 2 * kPairKeyTile * args_.head_dim * BytesOf(kType) / 64;
    return lines / (ScoreSteps() + height_ + WeighSteps()) + 1;
  }

  void Divide(float* memory) {
    const int64_t queries = piece_.kv_heads * padded_;
    const auto take = [&](int64_t floats) {
      float* part = memory;
      memory += floats;
      return part;
    };
    keys_ = reinterpret_cast<uint32_t*>(take(kPairKeyTile * steps_ * 16));
    values_ = reinterpret_cast<uint32_t*>(take(kPairKeyTile * steps_ * 16));
    q_ = reinterpret_cast<uint16_t*>(take(queries * steps_ * 16));
    out_ = take(queries * steps_ * 32);
    sums_ = take(queries * kLanes);
    const auto clear = [&](void* from) {  // up to what was taken last
      const uint8_t* end = reinterpret_cast<const uint8_t*>(memory);
      memset(from, 0, static_cast<size_t>(end - static_cast<const uint8_t*>(from)));
    };
    // Of the last 32 dims, those beyond head_dim.
    clear(args_.head_dim % 32 != 0 ? static_cast<void*>(keys_) : q_);
    for (int i = 0; i < 2; ++i) {
      scores_[i] = take(kLanes * kPairKeyTile);
      weights_[i] = reinterpret_cast<uint16_t*>(take(kLanes * kPairKeyTile / 2));
    }
    shifts_ = memory;
    for (int64_t i = 0; i < queries; ++i) shifts_[i] = -__builtin_inff();
    for (int64_t head = 0; head < piece_.kv_heads; ++head) {
      for (int64_t i = 0; i < queries_; ++i) PlaceQuery(head, i);
    }
  }

  // Rounded, [tiles of queries][step of 32 dims][query][32].
  void PlaceQuery(int64_t head, int64_t query) {
    const float* x = args_.q + PlaceOf(args_, piece_, head * queries_ + query, args_.q_stride);
    uint16_t* to = Query(head, query / height_) + query % height_ * 32;
    for (int64_t d = 0; d < args_.head_dim; d += kLanes) {
      StoreBfloat(to + d / 32 * height_ * 32 + d % 32,
                  WithoutSubnormals(LoadPart(x + d, args_.head_dim - d)));
    }
  }
  uint16_t* Query(int64_t head, int64_t tile) const {
    return q_ + (head * padded_ + tile * height_) * steps_ * 32;
  }
  // [sixteens of dims][query][16].
  float* Out(int64_t head, int64_t tile) const {
    return out_ + (head * padded_ + tile * height_) * steps_ * 32;
  }

  KeyPlaces Places(int64_t tile) const {
    const int64_t origin = Smaller(tile, newest_ / kPairKeyTile) * kPairKeyTile;
    return PlacesOf(args_, origin,
                    {Larger(oldest_ - origin, 0), Smaller(newest_ + 1 - origin, kPairKeyTile)});
  }

  void Fetch() { fetcher_.Fetch(fetched_); }
  void StartFetching(const Unit& unit) {
    const int64_t kv_head = piece_.kv_head + unit.head;
    fetcher_.Start(HeadParts<kType>(args_, true, kv_head), HeadParts<kType>(args_, false, kv_head),
                   unit.places, kLanes * args_.head_dim * BytesOf(kType));
  }
  void Prepare(const Unit& unit) {
    const int64_t kv_head = piece_.kv_head + unit.head;
    if (!KeysInPlace()) ExpandKeys<kType>(args_, unit.places, kv_head, keys_);
    ExpandValues<kType>(args_, unit.places, kv_head, values_);
  }
  // Where steps are whole, tiles of bf16 are loaded from the blocks.
  bool KeysInPlace() const { return kType == KvType::kBF16 && args_.head_dim % 32 == 0; }
  // Of a group of the unit, its tile of a step.
  const void* KeysAt(const Unit& unit, int64_t group, int64_t step) const {
    if (KeysInPlace()) {
      const HeadParts<kType> part(args_, true, piece_.kv_head + unit.head);
      return part.Share(unit.places, group) + step * kPairTileWords * 4;
    }
    return keys_ + ((group / kBandGroups * steps_ + step) * kBandGroups + group % kBandGroups) *
                       kPairTileWords;
  }

  // Sums 0 .. kTiles - 1 += left times as many tiles, each where right() says.
  template <int kTiles>
  void Multiply(const void* left, const auto& right) {
    tiles_.Load(kLeft, left, kRowBytes);
    const auto product = [&]<int kTile>() {
      tiles_.Load(kRight, right(kTile), kRowBytes);
      tiles_.Dot(Constant<kTile>{}, kLeft, kRight);
    };
    Unroll<0, kTiles>(product);
  }

  // Step of the products of queries and keys: scores [groups][query][16].
  int64_t ScoreSteps() const { return kKeyGroups / kBandGroups * steps_; }
  void Score(const Unit& unit, int64_t tile, int64_t step) {
    Fetch();
    const int64_t band = step / steps_, of_band = step % steps_;
    const auto zero = [&]<int kTile>() { tiles_.Zero(Constant<kTile>{}); };
    if (of_band == 0) Unroll<0, kBandGroups>(zero);
    Multiply<kBandGroups>(Query(unit.head, tile) + of_band * height_ * 32,
                          [&](int64_t i) { return KeysAt(unit, band * kBandGroups + i, of_band); });
    const auto store = [&]<int kTile>() {
      tiles_.Store(Constant<kTile>{},
                   scores_[tile % 2] + (band * kBandGroups + kTile) * height_ * kLanes);
    };
    if (of_band + 1 == steps_) Unroll<0, kBandGroups>(store);
  }

  // Step of the products of weights and values.
  int64_t WeighSteps() const { return steps_ * kValueSteps; }
  void Weigh(int64_t head, int64_t tile, int64_t step) {
    Fetch();
    if (units_ - step / kValueSteps * kBandGroups == 1) {
      WeighUnits<1>(head, tile, step);
    } else {
      WeighUnits<2>(head, tile, step);
    }
  }
  template <int kUnits>
  void WeighUnits(int64_t head, int64_t tile, int64_t step) {
    float* out = Out(head, tile) + step / kValueSteps * kBandGroups * height_ * kLanes;
    const auto load = [&]<int kTile>() {
      tiles_.Load(Constant<kTile>{}, out + kTile * height_ * kLanes, kRowBytes);
    };
    if (step % kValueSteps == 0) Unroll<0, kUnits>(load);
    Multiply<kUnits>(weights_[tile % 2] + step % kValueSteps * height_ * 32, [&](int64_t i) {
      return values_ + (step * kBandGroups + i) * kPairTileWords;
    });
    const auto store = [&]<int kTile>() {
      tiles_.Store(Constant<kTile>{}, out + kTile * height_ * kLanes);
    };
    if (step % kValueSteps == kValueSteps - 1) Unroll<0, kUnits>(store);
  }

  // All queries of the piece that see keys of the unit. `coming` is expanded as soon as nobody
  // needs this unit any more.
  void Visit(const Unit& unit, const Unit& coming) {
    const int64_t origin = unit.places.origin, start = args_.start + piece_.first;
    const int64_t first_row = Larger(0, origin - start);
    const int64_t end_row =
        args_.window > 0 ? Smaller(piece_.rows, origin + kPairKeyTile + args_.window - 1 - start)
                         : piece_.rows;
    const bool more = coming.places.origin > origin || coming.head > unit.head;
    if (more) StartFetching(coming);
    const int64_t begin = first_row * group_ / height_,
                  end = (end_row * group_ + height_ - 1) / height_;
    for (int64_t i = 0; i < ScoreSteps(); ++i) Score(unit, begin, i);
    for (int64_t tile = begin; tile < end; ++tile) {
      Softmax(unit, tile, tile + 1 < end, tile > begin);
    }
    for (int64_t i = 0; i < WeighSteps(); ++i) Weigh(unit.head, end - 1, i);
    if (more) Prepare(coming);
  }

  // Weights of a tile's queries; between them the products of the tiles around it.
  void Softmax(const Unit& unit, int64_t tile, bool score_next, bool weigh_last) {
    const int64_t scoring = score_next ? ScoreSteps() : 0;
    const int64_t steps = scoring + (weigh_last ? WeighSteps() : 0);
    const int64_t first = tile * height_, rows = Smaller(height_, queries_ - first);
    const int64_t origin = unit.places.origin;
    const bool plain = args_.soft_cap == 0.0f && KeysSeen(first, origin).end == kPairKeyTile &&
                       KeysSeen(first + rows - 1, origin).begin == 0;
    const HeadParts<kType> key_part(args_, true, piece_.kv_head + unit.head);
    const HeadParts<kType> value_part(args_, false, piece_.kv_head + unit.head);
    for (int64_t g = 0; g < kKeyGroups && kType == KvType::kInt8; ++g) {
      key_scales_[g] = key_part.Scales(unit.places, g);
      value_scales_[g] = value_part.Scales(unit.places, g);
    }
    int64_t step = 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (; step * rows < (row + 1) * steps; ++step) {
        if (step < scoring) {
          Score(unit, tile + 1, step);
        } else {
          Weigh(unit.head, tile - 1, step - scoring);
        }
      }
      if (plain) {
        SoftmaxRow<true>(unit, tile, row, {0, kPairKeyTile});
      } else {
        SoftmaxRow<false>(unit, tile, row, KeysSeen(first + row, origin));
      }
    }
  }

  KeyRange KeysSeen(int64_t query, int64_t origin) const {
    const int64_t position = args_.start + piece_.first + query / group_;
    const int64_t oldest = args_.window > 0 ? position - args_.window + 1 : 0;
    return {Larger(oldest - origin, 0), Smaller(position + 1 - origin, kPairKeyTile)};
  }

  // kPlain: no cap, and the query sees all keys.
  template <bool kPlain>
  void SoftmaxRow(const Unit& unit, int64_t tile, int64_t row, KeyRange seen) {
    Fetch();
    const float* scores = scores_[tile % 2] + row * kLanes;
    const auto select = [&](int64_t g, F32x16 yes, float no) {
      if constexpr (kPlain) return yes;
      const F32x16 key =
          ToFloat(AddI(LoadBytes(kLaneNumbers), Set1I(static_cast<int32_t>(g * kLanes))));
      const F32x16 left = SelectLess(key, Set1(static_cast<float>(seen.end)), yes, Set1(no));
      return SelectLess(key, Set1(static_cast<float>(seen.begin)), Set1(no), left);
    };
    F32x16 s[kKeyGroups];
    F32x16 most = Set1(-__builtin_inff());
    for (int64_t g = 0; g < kKeyGroups; ++g) {
      s[g] = Load(scores + g * height_ * kLanes);
      if constexpr (kType == KvType::kInt8) s[g] = Mul(s[g], Load(key_scales_[g]));
      if (!kPlain && args_.soft_cap != 0.0f) s[g] = Scaled(args_, s[g]);
      s[g] = select(g, s[g], -__builtin_inff());
      most = Max(most, s[g]);
    }
    const int64_t query = unit.head * padded_ + tile * height_ + row;
    const float highest = ReduceMax(most) * factor_;
    float* sums = sums_ + query * kLanes;
    if (highest > shifts_[query] + kSlack) [[unlikely]] {
      Shrink(Exp2Of(Set1(shifts_[query] - highest)), sums, Out(unit.head, tile) + row * kLanes);
      shifts_[query] = highest;
    }
    const F32x16 factor = Set1(factor_), shift = Set1(-shifts_[query]);
    F32x16 total = Load(sums), p[kKeyGroups];
    for (int64_t g = 0; g < kKeyGroups; ++g) {
      p[g] = select(g, Exp2Of(Fma(s[g], factor, shift)), 0.0f);
      total = Add(total, p[g]);
      if constexpr (kType == KvType::kInt8)
        p[g] = select(g, Mul(p[g], Load(value_scales_[g])), 0.0f);
    }
    Store(sums, total);
    uint16_t* weights = weights_[tile % 2] + row * 32;
    for (int64_t g = 0; g < kKeyGroups; g += 2, weights += height_ * 32) {
      StorePairs(reinterpret_cast<uint32_t*>(weights), Tiles::Join(p[g], p[g + 1]));
    }
  }

  // What the earlier keys gave to a query.
  void Shrink(F32x16 by, float* sums, float* out) const {
    Store(sums, Mul(Load(sums), by));
    for (int64_t unit = 0; unit < units_; ++unit, out += height_ * kLanes) {
      Store(out, Mul(Load(out), by));
    }
  }

  void Finish() {
    for (int64_t i = 0; i < piece_.kv_heads * queries_; ++i) {
      const int64_t head = i / queries_, query = i % queries_;
      const F32x16 total = Set1(ReduceAdd(Load(sums_ + (head * padded_ + query) * kLanes)));
      const float* from = Out(head, query / height_) + query % height_ * kLanes;
      float* to = args_.out + PlaceOf(args_, piece_, i, args_.out_stride);
      // A tile of which a query sees no key may turn its -0 into 0, so that all must.
      for (int64_t d = 0; d < args_.head_dim; d += kLanes) {
        StorePart(to + d, Div(Add(Load(from + d * height_), Set1(0.0f)), total),
                  args_.head_dim - d);
      }
    }
  }

  static constexpr int32_t kLaneNumbers[kLanes] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                   8, 9, 10, 11, 12, 13, 14, 15};

  const AttentionArgs& args_;
  const AttentionPiece& piece_;
  const int64_t group_;
  const int64_t queries_, padded_;  // of one KV head
  const int64_t height_;            // of a tile of queries
  const int64_t steps_;             // of 32 dims
  const int64_t units_;             // of 16 dims
  const float factor_;
  const int64_t oldest_, newest_;  // positions that any query sees
  const int64_t fetched_;          // lines of each Fetch()
  Fetcher fetcher_;
  Tiles tiles_;

  uint32_t *keys_, *values_;  // kv_pairs_impl.h
  uint16_t* q_;
  float *out_, *sums_, *shifts_;
  // Of a tile of queries and of the next.
  float* scores_[2];      // [groups of keys][query][16]
  uint16_t* weights_[2];  // [steps of 32 keys][query][32]
  const float *key_scales_[kKeyGroups], *value_scales_[kKeyGroups];
};

// attention_bf16 of KernelTable.
template <class Tiles>
void AttentionOnTiles(const AttentionArgs& args, const AttentionPiece& piece, float* scratch) {
  if (args.type == KvType::kInt8) {
    TileAttention<KvType::kInt8, Tiles>(args, piece, scratch).Run();
  } else {
    TileAttention<KvType::kBF16, Tiles>(args, piece, scratch).Run();
  }
}

// The kernels of `table`, with attention_bf16 on `Tiles`.
template <class Tiles>
constexpr KernelTable WithAttentionTiles(KernelTable table) {
  table.attention_bf16 = AttentionOnTiles<Tiles>;
  return table;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_ATTENTION_TILES_IMPL_H_
