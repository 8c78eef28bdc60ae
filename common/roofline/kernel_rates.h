// SPDX-License-Identifier: Apache-2.0
// How fast our own kernels are, by the rows of a step: on weights that stay in the caches, which
// is computing alone; a whole layer as a step finds its weights, norms and activations and all; and
// attention by the rows and keys of a sequence. Pure; measure_kernels.h finds them out.
//
//   const KernelRates rates = MeasureKernels(runner, peaks.l3_bytes);
//   rates.LayerProducts(shape, 16)                              // of all layers, computing alone
//   rates.LayerSeconds(16) + rates.AttentionSeconds(rows)       // of one layer, as it passes
#ifndef SETU_COMMON_ROOFLINE_KERNEL_RATES_H_
#define SETU_COMMON_ROOFLINE_KERNEL_RATES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "common/roofline/step_work.h"

namespace setu::roofline {

// The rows that are timed; between them seconds are interpolated, beyond them they are
// proportional.
inline constexpr std::array<int64_t, 7> kTimedRows = {1, 4, 8, 16, 32, 64, 512};
using SecondsByRows = std::array<double, kTimedRows.size()>;
double SecondsAt(const SecondsByRows& seconds, double rows);

struct KernelRates {
  struct Product {
    kernels::WeightType type = kernels::WeightType::kF32;
    SecondsByRows per_value{};  // of one weight that meets so many rows, from the caches
  };
  // Seconds of one layer for each new token, and for each key that it sees.
  struct Attention {
    double row = 0, key = 0;
  };

  std::vector<Product> products;  // one for each type of the model, and for Q8_0 and Q4_0
  SecondsByRows layer{};          // of a layer without its attention, on the average
  SecondsByRows logits{};         // of the output matrix and its norm
  Attention single;               // of sequences with one row each
  Attention chunk;                // of those with kChunkRows or more
  Attention int8_kv;              // single, were K and V int8

  static constexpr int64_t kChunkRows = 64;

  // Of all layers' products and of the output matrix, computing alone.
  double LayerProducts(const ModelShape& shape, double rows) const;
  double LogitProducts(const ModelShape& shape, double rows) const;
  // As they pass: of one layer without its attention, and of the output matrix.
  double LayerSeconds(double rows) const;
  double LogitSeconds(double rows) const;
  double AttentionSeconds(const StepRows& rows) const;  // of one layer

 private:
  double Sum(int64_t FormatValues::*values, const ModelShape& shape, double rows) const;
};

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_KERNEL_RATES_H_
