// SPDX-License-Identifier: Apache-2.0
// How fast our own kernels compute, apart from memory: the seconds that a product takes by weight
// type and rows, and attention by rows. Measured on the model's own weights, once while they stay
// in the caches, if any matrix of the type fits there, and once as a step finds them.
//
//   const KernelRates rates = MeasureKernels(runner, peaks.l3_bytes);
//   rates.ProductSeconds(shape, rows) + rates.AttentionSeconds(work, rows)
#ifndef SETU_COMMON_ROOFLINE_KERNEL_RATES_H_
#define SETU_COMMON_ROOFLINE_KERNEL_RATES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "common/engine/model_runner.h"
#include "common/roofline/step_work.h"

namespace setu::roofline {

// The rows that a product is timed with; between them seconds are interpolated, beyond them they
// are proportional.
inline constexpr std::array<int64_t, 4> kTimedRows = {1, 4, 16, 64};
using SecondsByRows = std::array<double, kTimedRows.size()>;
double SecondsAt(const SecondsByRows& seconds, double rows);

struct KernelRates {
  struct Product {
    kernels::WeightType type = kernels::WeightType::kF32;
    // Of one weight that meets so many rows: while weights stay in the caches, and while they come
    // from memory, or from wherever a step finds them.
    SecondsByRows per_value{};
    SecondsByRows streamed{};
  };
  std::vector<Product> products;  // one for each type of the model
  // Of one operation, where each sequence has one row, or a chunk of kTimedRows.back() or more.
  double attention_single = 0;
  double attention_chunk = 0;

  // Of all products of a step: their computing alone, and with their reading.
  double ProductSeconds(const ModelShape& shape, const StepRows& rows) const;
  double StreamedSeconds(const ModelShape& shape, const StepRows& rows) const;
  double AttentionSeconds(const StepWork& work, const StepRows& rows) const;

 private:
  double Sum(SecondsByRows Product::*per_value, const ModelShape& shape,
             const StepRows& rows) const;
};

// At load; takes some ten milliseconds, less with small weights, and memory as a few steps do. A
// product that would take longer than a few milliseconds is not tried: its fewer rows stand for it.
KernelRates MeasureKernels(engine::ModelRunner& runner, int64_t l3_bytes);

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_KERNEL_RATES_H_
