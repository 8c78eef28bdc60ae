// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/measure_products.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "common/roofline/kernel_timing.h"
#include "common/roofline/timing.h"

namespace setu::roofline {
namespace {

using kernels::PackedMatrix;
using kernels::WeightType;

constexpr int kCalls = 64;
constexpr int64_t kMostOutputs = 4 << 20;  // values
constexpr int64_t kUnknownCache = 8 << 20;

// The largest that stays in the last cache with room for activations, and whose outputs are not too
// many; or else the smallest.
const PackedMatrix& Typical(const std::vector<const PackedMatrix*>& matrices, int64_t l3_bytes) {
  const auto room = static_cast<size_t>((l3_bytes > 0 ? l3_bytes : kUnknownCache) / 4);
  const auto fits = [room](const PackedMatrix* m) {
    return m->bytes() <= room && m->rows() * kTimedRows.back() <= kMostOutputs;
  };
  const auto worse = [&fits](const PackedMatrix* a, const PackedMatrix* b) {
    if (fits(a) != fits(b)) return fits(b);
    return fits(a) ? a->bytes() < b->bytes() : a->bytes() > b->bytes();
  };
  return **std::ranges::max_element(matrices, worse);
}

// A Linear of random rows and `times` the weights, into memory of its own.
double TimeLinear(kernels::Ops& ops, const PackedMatrix& weights, int64_t rows, int64_t times = 1) {
  const std::vector<float> x = RandomRows(rows * weights.cols());
  const int64_t values = rows * weights.rows();
  std::vector<float> out(times * values);
  std::vector<kernels::LinearOutput> outputs;
  for (int64_t i = 0; i < times; ++i) {
    outputs.push_back({.weights = &weights,
                       .out = {out.data() + i * values, rows, weights.rows(), weights.rows()}});
  }
  const kernels::ConstMatrix input(x.data(), rows, weights.cols(), weights.cols());
  return Fastest([&] { return SecondsOf([&] { ops.Linear(input, outputs); }); });
}

std::unique_ptr<PackedMatrix> RandomMatrix(kernels::Ops& ops, int64_t rows, int64_t cols,
                                           WeightType type) {
  const std::vector<float> values = RandomRows(rows * cols);
  return ops.PackAs(
      {.rows = rows, .cols = cols, .data = reinterpret_cast<const std::byte*>(values.data())},
      type);
}

// Computing alone: the calls are no part of it.
KernelRates::Product TimeProduct(kernels::Ops& ops, const PackedMatrix& weights, int64_t times,
                                 double call) {
  const int64_t outputs = times * weights.rows();
  const auto growth = [](size_t i) { return 1.0 * kTimedRows[i] / kTimedRows[i - 1]; };
  SecondsByRows seconds = TimeRows(kMostOutputs / outputs, growth, [&](int64_t rows) {
    return std::max(TimeLinear(ops, weights, rows, times) - call, kLeast);
  });
  for (double& s : seconds) s /= 1.0 * outputs * weights.cols();
  return {weights.type(), seconds};
}

// Of a type that the model might have. As many outputs as one of its own: rows are prepared for a
// product once for all of its outputs, which counts where these are few.
KernelRates::Product TimeAdvised(kernels::Ops& ops, const PackedMatrix& like, WeightType type,
                                 double call) {
  constexpr int64_t kWhole = 256, kMostValues = 1 << 20;
  const int64_t cols = std::max(kWhole, like.cols() / kWhole * kWhole);
  const int64_t rows = std::min(like.rows(), kMostValues / cols);
  const auto weights = RandomMatrix(ops, rows, cols, type);
  return TimeProduct(ops, *weights, like.rows() / rows, call);
}

}  // namespace

double TimeCall(kernels::Ops& ops) {
  const auto weights = RandomMatrix(ops, 32, 32, WeightType::kF32);
  double least = TimeLinear(ops, *weights, 1);
  for (int i = 1; i < kCalls; ++i) least = std::min(least, TimeLinear(ops, *weights, 1));
  return least;
}

std::vector<KernelRates::Product> MeasureProducts(kernels::Ops& ops,
                                                  const std::vector<const PackedMatrix*>& matrices,
                                                  int64_t l3_bytes, double call) {
  std::vector<KernelRates::Product> products;
  const auto known = [&products](WeightType type) {
    return std::ranges::count(products, type, &KernelRates::Product::type) > 0;
  };
  for (const PackedMatrix* matrix : matrices) {
    if (known(matrix->type())) continue;
    std::vector<const PackedMatrix*> same = matrices;
    std::erase_if(same, [matrix](const PackedMatrix* m) { return m->type() != matrix->type(); });
    products.push_back(TimeProduct(ops, Typical(same, l3_bytes), 1, call));
  }
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_0}) {
    if (!known(type)) products.push_back(TimeAdvised(ops, Typical(matrices, l3_bytes), type, call));
  }
  return products;
}

}  // namespace setu::roofline
