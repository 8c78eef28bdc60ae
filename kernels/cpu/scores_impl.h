// SPDX-License-Identifier: Apache-2.0
// Passes over a row of scores (kernels/scores.h).
#ifndef SETU_KERNELS_CPU_SCORES_IMPL_H_
#define SETU_KERNELS_CPU_SCORES_IMPL_H_

#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

void OrderScores(const float* x, int64_t count, float* out) {
  const F32x16 least = Set1(-__builtin_inff()), most = Set1(__FLT_MAX__);
  for (int64_t i = 0; i < count; i += kLanes) {
    // The second operand of Max is what stays of two where one is NaN.
    StorePart(out + i, Min(Max(LoadPart(x + i, count - i), least), most), count - i);
  }
}

float HighestScore(const float* x, int64_t count) {
  F32x16 highest = Set1(-__builtin_inff());
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) highest = Max(highest, Load(x + i));
  float all = ReduceMax(highest);
  for (int64_t i = whole; i < count; ++i) all = x[i] > all ? x[i] : all;
  return all;
}

void ScaleScores(float* x, int64_t count, float origin, float divisor) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const F32x16 score = LoadPart(x + i, count - i);
    StorePart(x + i, Div(Sub(score, Set1(origin)), Set1(divisor)), count - i);
  }
}

double SumScores(const float* x, int64_t count, float least) {
  F64x16 sums = ZeroF64();
  const F32x16 bound = Set1(least), zero = Set1(0.0f);
  for (int64_t i = 0; i < count; i += kLanes) {
    const F32x16 score = LoadPart(x + i, count - i);
    sums = AddF64(sums, SelectLess(score, bound, zero, score));
  }
  double lanes[kLanes];
  StoreF64(lanes, sums);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

int64_t SelectScores(const float* x, int64_t count, float least, int32_t* ids) {
  const F32x16 bound = Set1(least);
  int64_t selected = 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    uint32_t lanes = 0xffff & ~LessMask(Load(x + i), bound);
    for (; lanes != 0; lanes &= lanes - 1) {
      ids[selected++] = static_cast<int32_t>(i + __builtin_ctz(lanes));
    }
  }
  for (; i < count; ++i) {
    if (x[i] >= least) ids[selected++] = static_cast<int32_t>(i);
  }
  return selected;
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_SCORES_IMPL_H_
