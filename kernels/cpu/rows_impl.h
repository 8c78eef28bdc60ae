// SPDX-License-Identifier: Apache-2.0
// Ops on one row (or one head) at a time: norm, rotary embedding, activation, KV rounding.
#ifndef SETU_KERNELS_CPU_ROWS_IMPL_H_
#define SETU_KERNELS_CPU_ROWS_IMPL_H_

#include "kernels/cpu/exp_impl.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes_impl.h"
#include "kernels/kv_place.h"

namespace setu::kernels {
namespace {

void RmsNorm(const float* x, const float* weight, float eps, int64_t cols, float* out) {
  F32x16 squares = Set1(0.0f);
  for (int64_t i = 0; i < cols; i += kLanes) {
    const F32x16 v = LoadPart(x + i, cols - i);
    squares = Fma(v, v, squares);
  }
  const float mean = ReduceAdd(squares) / static_cast<float>(cols);
  const F32x16 inverse = Set1(1.0f / __builtin_sqrtf(mean + eps));
  for (int64_t i = 0; i < cols; i += kLanes) {
    const F32x16 normed = Mul(LoadPart(x + i, cols - i), inverse);
    StorePart(out + i, Mul(normed, LoadPart(weight + i, cols - i)), cols - i);
  }
}

// Pairs (x, y) turned: x cos - y sin, x sin + y cos.
inline void Turn(float& a, float& b, float cos, float sin) {
  const float x = a, y = b;
  a = Fma(x, cos, -(y * sin));
  b = Fma(x, sin, y * cos);
}

void Rope(float* head, const float* cos, const float* sin, int64_t rotary_dim, RopeKind kind) {
  const int64_t half = rotary_dim / 2;
  if (kind == RopeKind::kInterleaved) {
    for (int64_t i = 0; i < half; ++i) Turn(head[2 * i], head[2 * i + 1], cos[i], sin[i]);
    return;
  }
  for (int64_t i = 0; i < half; i += kLanes) {
    const int64_t count = half - i;
    const F32x16 x = LoadPart(head + i, count), y = LoadPart(head + half + i, count);
    const F32x16 c = LoadPart(cos + i, count), s = LoadPart(sin + i, count);
    StorePart(head + i, Fma(x, c, Mul(Mul(y, s), Set1(-1.0f))), count);
    StorePart(head + half + i, Fma(x, s, Mul(y, c)), count);
  }
}

void SiluMul(const float* gate, const float* up, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const F32x16 silu = SiluOf(LoadPart(gate + i, count - i));
    StorePart(out + i, Mul(silu, LoadPart(up + i, count - i)), count - i);
  }
}

void ExpLanes(const float* x, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += kLanes) {
    StorePart(out + i, ExpOf(LoadPart(x + i, count - i)), count - i);
  }
}

// `first` is even.
template <class T>
inline void Scatter(const T* from, int64_t first, int64_t count, KvPlace place, T* to) {
  to += IndexOf(place, first);
  if (place.together == 1) {
    for (int64_t i = 0; i < count; ++i) to[i * place.stride] = from[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i / 2 * place.stride + i % 2] = from[i];
}

// Rule 8: d = max|x| / 127, q = round(x / d). A scale that is no normal number counts as 0.
inline void StoreInt8(const float* x, int64_t count, KvPlace place, uint8_t* head, float* scale) {
  F32x16 amax = Set1(0.0f);
  for (int64_t i = 0; i < count; i += kLanes) amax = Max(amax, Abs(LoadPart(x + i, count - i)));
  const float d = ReduceMax(amax) / 127.0f;
  const bool normal = d >= 0x1p-126f;
  *scale = normal ? d : 0.0f;
  for (int64_t i = 0; i < count; i += kLanes) {
    const F32x16 ratio = Div(LoadPart(x + i, count - i), Set1(normal ? d : 1.0f));
    int8_t q[kLanes];
    StoreS8(q, RoundToInt(Min(Max(ratio, Set1(-127.0f)), Set1(127.0f))));
    Scatter(q, i, Smaller(kLanes, count - i), place, reinterpret_cast<int8_t*>(head));
  }
}

void StoreKv(const float* x, int64_t count, KvType type, KvPlace place, uint8_t* head,
             float* scale) {
  if (type == KvType::kF32) return Scatter(x, 0, count, place, reinterpret_cast<float*>(head));
  if (type == KvType::kInt8) return StoreInt8(x, count, place, head, scale);
  uint16_t* to = reinterpret_cast<uint16_t*>(head);
  for (int64_t i = 0; i < count; i += kLanes) {
    uint16_t rounded[kLanes];
    const auto round = type == KvType::kF16 ? StoreHalf : StoreBfloat;
    round(rounded, LoadPart(x + i, count - i));
    Scatter(rounded, i, Smaller(kLanes, count - i), place, to);
  }
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_ROWS_IMPL_H_
