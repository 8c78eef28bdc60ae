// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/kernel_rates.h"

#include <algorithm>
#include <cstddef>

namespace setu::roofline {

double SecondsAt(const SecondsByRows& seconds, double rows) {
  for (size_t i = 1; i < kTimedRows.size(); ++i) {
    const auto low = static_cast<double>(kTimedRows[i - 1]);
    const auto high = static_cast<double>(kTimedRows[i]);
    if (rows > high) continue;
    const double share = std::max(0.0, (rows - low) / (high - low));
    return seconds[i - 1] + share * (seconds[i] - seconds[i - 1]);
  }
  return seconds.back() * rows / static_cast<double>(kTimedRows.back());
}

double KernelRates::LayerProducts(const ModelShape& shape, double rows) const {
  return Sum(&FormatValues::layers, shape, rows);
}

double KernelRates::LogitProducts(const ModelShape& shape, double rows) const {
  return rows == 0 ? 0.0 : Sum(&FormatValues::logits, shape, rows);
}

double KernelRates::Sum(int64_t FormatValues::*values, const ModelShape& shape, double rows) const {
  double seconds = 0;
  for (const FormatValues& format : shape.formats) {
    for (const Product& product : products) {
      if (product.type != format.type) continue;
      seconds += static_cast<double>(format.*values) * SecondsAt(product.per_value, rows);
    }
  }
  return seconds;
}

double KernelRates::LayerSeconds(double rows) const { return SecondsAt(layer, rows); }

double KernelRates::LogitSeconds(double rows) const {
  return rows == 0 ? 0.0 : SecondsAt(logits, rows);
}

double KernelRates::AttentionSeconds(const StepRows& rows) const {
  if (rows.sequences == 0) return 0;
  const double each = static_cast<double>(rows.rows) / static_cast<double>(rows.sequences);
  const double share = std::min(1.0, (each - 1) / (kChunkRows - 1));
  const auto of = [&rows](const Attention& attention) {
    return attention.row * static_cast<double>(rows.rows) +
           attention.key * static_cast<double>(rows.pairs);
  };
  return of(single) + share * (of(chunk) - of(single));
}

}  // namespace setu::roofline
