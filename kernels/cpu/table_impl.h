// SPDX-License-Identifier: Apache-2.0
// The ops over the lanes of the simd_*.h that was included before, as one table.
#ifndef SETU_KERNELS_CPU_TABLE_IMPL_H_
#define SETU_KERNELS_CPU_TABLE_IMPL_H_

#include "kernels/cpu/attention_impl.h"
#include "kernels/cpu/attention_tiles_impl.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lane_tiles_impl.h"
#include "kernels/cpu/linear_bf16_impl.h"
#include "kernels/cpu/linear_impl.h"
#include "kernels/cpu/probe_impl.h"
#include "kernels/cpu/rows_impl.h"
#include "kernels/cpu/scores_impl.h"

namespace setu::kernels {
namespace {

constexpr KernelTable TableOf(const char* isa) {
  return {
      .isa = isa,
      .linear_f32 = LinearF32,
      .linear_int8 = LinearInt8,
      .quantise = Quantise,
      .linear_bf16 = LinearBf16,
      .round = RoundRows,
      .round_rows = 1,
      .bf16_order = PackOrder::kLanes,
      .bf16_scratch = 0,
      .bf16_panel = 1,
      .bf16_share = 0,
      .embed = Embed,
      .rms_norm = RmsNorm,
      .rope = Rope,
      .silu_mul = SiluMul,
      .exp = ExpLanes,
      .order_scores = OrderScores,
      .highest_score = HighestScore,
      .scale_scores = ScaleScores,
      .sum_scores = SumScores,
      .select_scores = SelectScores,
      .store_kv = StoreKv,
      .attention = Attention,
      .attention_bf16 = AttentionOnTiles<LaneTiles>,
      .probe_f32 = ProbeF32,
      .probe_bf16 = ProbeF32,  // one fma for a product, as in linear_bf16_impl.h
      .probe_int8 = ProbeInt8,
      .sum_words = SumWords,
  };
}

}  // namespace
}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_TABLE_IMPL_H_
