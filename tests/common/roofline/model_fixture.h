// SPDX-License-Identifier: Apache-2.0
// Step models of machines that are not there, for tests of what is computed from them.
#ifndef SETU_TESTS_COMMON_ROOFLINE_MODEL_FIXTURE_H_
#define SETU_TESTS_COMMON_ROOFLINE_MODEL_FIXTURE_H_

#include "common/roofline/step_model.h"

namespace setu::roofline {

// A billion weights in Q8_0, 16 layers, 32 heads of 64 with 8 of K and V in f16, on a machine that
// reads 20 GB/s and computes 1 TFLOP/s, half of it in kernels with many rows.
inline StepModel BillionModel() {
  constexpr int64_t kValues = 1'000'000'000;
  StepModel model;
  model.shape = {.layers = 16,
                 .attention_width = 2048,
                 .formats = {{kernels::WeightType::kQ8_0, kValues, kValues / 16}},
                 .layer_bytes = kValues / 32 * 34,
                 .logit_bytes = kValues / 512 * 34,
                 .tied = true,
                 .kv_values = 16 * 2 * 8 * 64,
                 .kv_token_bytes = 16 * 2 * 8 * 64 * 2};
  model.peaks = {.bytes_per_second = 20e9,
                 .operations_per_second = 1e12,
                 .weight_bytes = model.shape.layer_bytes,
                 .l3_bytes = 32 << 20};
  // Two operations a weight and row, at 250, 400 and then 500 GFLOP/s; beside products 20 us.
  SecondsByRows seconds{};
  for (size_t i = 0; i < kTimedRows.size(); ++i) {
    const double rate = i == 0 ? 250e9 : i == 1 ? 400e9 : 500e9;
    seconds[i] = 2.0 * static_cast<double>(kTimedRows[i]) / rate;
  }
  model.rates = {
      .products = {{kernels::WeightType::kQ8_0, seconds}, {kernels::WeightType::kQ4_0, seconds}},
      .single = {.key = 4 * 2048 / 200e9},
      .chunk = {.key = 4 * 2048 / 400e9},
      .int8_kv = {.key = 4 * 2048 / 200e9}};
  for (size_t i = 0; i < kTimedRows.size(); ++i) {
    const double products = model.rates.LayerProducts(model.shape, kTimedRows[i]) / 16;
    model.rates.layer[i] =
        std::max(products, static_cast<double>(model.shape.layer_bytes) / 16 / 20e9) + 20e-6;
    model.rates.logits[i] = model.rates.LogitProducts(model.shape, kTimedRows[i]);
  }
  return model;
}

// A hundred thousand weights on the same machine.
inline StepModel TinyStepModel() {
  StepModel model = BillionModel();
  model.shape.formats = {{kernels::WeightType::kQ8_0, 100'000, 10'000}};
  model.shape.layer_bytes = 106'250;
  model.shape.logit_bytes = 10'625;
  model.rates.layer.fill(20e-6);
  model.rates.logits = {};
  return model;
}

}  // namespace setu::roofline

#endif  // SETU_TESTS_COMMON_ROOFLINE_MODEL_FIXTURE_H_
