// SPDX-License-Identifier: Apache-2.0
// The tiles of amx_tiles_impl.h over lanes: what TDPBF16PS does, as linear_bf16_impl.h has it, by
// fma: of 16 columns, in rows of 64 bytes. Right tiles stay where they were loaded from. A simd_*.h
// comes before.
#ifndef SETU_KERNELS_CPU_LANE_TILES_IMPL_H_
#define SETU_KERNELS_CPU_LANE_TILES_IMPL_H_

#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

class LaneTiles {
 public:
  LaneTiles(int64_t /*columns*/, int64_t rows) : rows_(rows) {}

  template <int64_t kTile>
  void Zero(Constant<kTile>) {
    memset(sums_[kTile], 0, sizeof(sums_[kTile]));
  }
  template <int64_t kTile>
  void Load(Constant<kTile>, const void* from, int64_t /*stride*/) {
    if constexpr (kTile < 4) {
      memcpy(sums_[kTile], from, Bytes());
    } else if constexpr (kTile < 6) {
      const uint16_t* x = static_cast<const uint16_t*>(from);
      for (int64_t i = 0; i < rows_ * 32; i += kLanes) {
        kernels::Store(left_[kTile - 4] + i, LoadBfloat(x + i));
      }
    } else {
      right_[kTile - 6] = static_cast<const uint32_t*>(from);
    }
  }
  template <int64_t kTile>
  void Store(Constant<kTile>, void* to) {
    memcpy(to, sums_[kTile], Bytes());
  }
  template <int64_t kSum, int64_t kLeft, int64_t kRight>
  void Dot(Constant<kSum>, Constant<kLeft>, Constant<kRight>) {
    const auto rows_at = [&]<int kRows>(int64_t row) {
      AddPairs<kRows>(left_[kLeft - 4] + row * 32, right_[kRight - 6], sums_[kSum] + row * kLanes);
    };
    ForRowBlocks<kBfloatRowBlock>(0, rows_, rows_at);
  }

  // 32 floats as the nearest bfloat16s.
  static I32x16 Join(F32x16 low, F32x16 high) {
    uint16_t words[2 * kLanes];
    StoreBfloat(words, low);
    StoreBfloat(words + kLanes, high);
    return LoadBytes(words);
  }

 private:
  // sums [kRows][16] += left [kRows][32] times the pairs of right [16][16][2].
  template <int kRows>
  static void AddPairs(const float* left, const uint32_t* right, float* sums) {
    F32x16 even[kRows], odd[kRows];
    for (int r = 0; r < kRows; ++r) even[r] = odd[r] = Set1(0.0f);
    for (int64_t i = 0; i < 16; ++i) {
      const I32x16 pairs = LoadBytes(right + i * kLanes);
      const F32x16 low = WithoutSubnormals(BitCast(ShiftLeft<16>(pairs)));
      const F32x16 high = WithoutSubnormals(BitCast(AndI(pairs, Set1I(-0x10000))));
      for (int r = 0; r < kRows; ++r) {
        even[r] = Fma(Set1(left[r * 32 + 2 * i]), low, even[r]);
        odd[r] = Fma(Set1(left[r * 32 + 2 * i + 1]), high, odd[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      kernels::Store(sums + r * kLanes,
                     Add(kernels::Load(sums + r * kLanes), Add(even[r], odd[r])));
    }
  }

  size_t Bytes() const { return static_cast<size_t>(rows_) * 64; }

  const int64_t rows_;  // of left tiles and of sums
  alignas(64) float sums_[4][16 * 16];
  alignas(64) float left_[2][16 * 32];
  const uint32_t* right_[2] = {};
};

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_LANE_TILES_IMPL_H_
