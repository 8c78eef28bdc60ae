// SPDX-License-Identifier: Apache-2.0
// What an ISA can do at most, for the roofline: the multiplying instruction of a numeric path on
// operands that stay in registers, and reading memory. A product's other work (loads, expanding
// weights, scales) is not in it: that is what separates a kernel from the roof.
//
//   f32    one fma per 16 products
//   bf16   the same; TDPBF16PS per 8192 products on tiles (linear_tiles_impl.h)
//   int8   VPDPBUSD per 64 products; in AVX2 what takes its place: VPMADDUBSW, VPMADDWD, VPADDD
#ifndef SETU_KERNELS_CPU_PROBE_IMPL_H_
#define SETU_KERNELS_CPU_PROBE_IMPL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes_impl.h"

namespace setu::kernels {
namespace {

// `sum` gets the sum of all products, so that none can be left out.
int64_t ProbeF32(const float* operands, int64_t rounds, float* sum) {
  F32x16 weights[kProbeWeights], sums[kProbeSums];
  for (int i = 0; i < kProbeWeights; ++i) weights[i] = Load(operands + (i + 1) * kLanes);
  for (F32x16& s : sums) s = Set1(0.0f);
  const F32x16 x = Load(operands);
  for (int64_t round = 0; round < rounds; ++round) {
    const auto product = [&]<int kI>() {
      sums[kI] = Fma(weights[kI % kProbeWeights], x, sums[kI]);
    };
    Unroll<0, kProbeSums>(product);
  }
  for (int i = 1; i < kProbeSums; ++i) sums[0] = Add(sums[0], sums[i]);
  *sum = ReduceAdd(sums[0]);
  return rounds * kProbeSums * kLanes;
}

int64_t ProbeInt8(const int8_t* operands, int64_t rounds, float* sum) {
  I32x16 weights[kProbeWeights], sums[kProbeSums];
  for (int i = 0; i < kProbeWeights; ++i) weights[i] = LoadBytes(operands + (i + 1) * 64);
  for (I32x16& s : sums) s = Set1I(0);
  const I32x16 x = LoadBytes(operands);
  for (int64_t round = 0; round < rounds; ++round) {
    // Unknown anew each round: else AVX2's products, which do not need the sum, leave the loop.
    for (I32x16& w : weights) w = InRegister(w);
    const auto product = [&]<int kI>() {
      sums[kI] = DotBytes(sums[kI], weights[kI % kProbeWeights], x);
    };
    Unroll<0, kProbeSums>(product);
  }
  for (int i = 1; i < kProbeSums; ++i) sums[0] = AddI(sums[0], sums[i]);
  *sum = static_cast<float>(ReduceAddI(sums[0]));
  return rounds * kProbeSums * kLanes * 4;
}

// The sum of the 32-bit words, modulo 2^32; what is missing of the last 64 bytes counts as zero.
uint32_t SumWords(const uint8_t* data, int64_t bytes) {
  constexpr int kSums = 4;
  I32x16 sums[kSums];
  for (I32x16& s : sums) s = Set1I(0);
  int64_t at = 0;
  for (; at + 64 * kSums <= bytes; at += 64 * kSums) {
    const auto one = [&]<int kI>() {
      __builtin_prefetch(data + at + 4096 + 64 * kI, 0, 2);
      sums[kI] = AddI(sums[kI], LoadBytes(data + at + 64 * kI));
    };
    Unroll<0, kSums>(one);
  }
  for (; at < bytes; at += 64) {
    uint8_t padded[64] = {};
    memcpy(padded, data + at, static_cast<size_t>(Smaller(64, bytes - at)));
    sums[0] = AddI(sums[0], LoadBytes(padded));
  }
  for (int i = 1; i < kSums; ++i) sums[0] = AddI(sums[0], sums[i]);
  return static_cast<uint32_t>(ReduceAddI(sums[0]));
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_PROBE_IMPL_H_
