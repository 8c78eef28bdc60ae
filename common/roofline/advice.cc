// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/advice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace setu::roofline {
namespace {

using kernels::WeightType;

constexpr double kInt8KvBytes = 1.0 + 4.0 / 64;  // of a value, with the float scale of a head of 64

double BytesPerWeight(const ModelShape& shape) {
  double values = 0;
  for (const FormatValues& format : shape.formats) {
    values += static_cast<double>(format.layers + format.logits);
  }
  return static_cast<double>(shape.layer_bytes + shape.logit_bytes) / values;
}

double BytesPerWeight(WeightType type) {
  return static_cast<double>(kernels::BlockBytes(type)) /
         static_cast<double>(kernels::BlockValues(type));
}

// What of a layer, and of the logits, are the products, as fast as they compute or are read.
double LayerProducts(const StepModel& model, double rows) {
  const ModelShape& shape = model.shape;
  return std::max(model.rates.LayerProducts(shape, rows),
                  static_cast<double>(shape.layer_bytes) / model.peaks.bytes_per_second) /
         static_cast<double>(shape.layers);
}
double LogitProducts(const StepModel& model, double rows) {
  return std::max(model.rates.LogitProducts(model.shape, rows),
                  static_cast<double>(model.shape.logit_bytes) / model.peaks.bytes_per_second);
}

// The model with all weights of that type, where they are smaller so: fewer bytes, and products at
// the type's own rates. Of what goes beyond them the fixed part stays; the rest is reading that
// does not overlap with computing, and shrinks with the bytes.
StepModel WithWeights(const StepModel& now, WeightType type) {
  const double scale = BytesPerWeight(type) / BytesPerWeight(now.shape);
  if (scale >= 1) return now;
  StepModel then = now;
  FormatValues all = {.type = type};
  for (const FormatValues& format : now.shape.formats) {
    all.layers += format.layers;
    all.logits += format.logits;
  }
  then.shape.formats = {all};
  for (int64_t* bytes : {&then.shape.layer_bytes, &then.shape.logit_bytes}) {
    *bytes = std::llround(scale * static_cast<double>(*bytes));
  }
  const auto beyond = [scale](double seconds, double products, double fixed) {
    const double all = std::max(seconds - products, 0.0);
    return std::min(all, fixed) + scale * std::max(all - fixed, 0.0);
  };
  const double fixed = now.FixedPerLayer();
  for (size_t i = 0; i < kTimedRows.size(); ++i) {
    const auto rows = static_cast<double>(kTimedRows[i]);
    then.rates.layer[i] =
        LayerProducts(then, rows) + beyond(now.rates.layer[i], LayerProducts(now, rows), fixed);
    then.rates.logits[i] =
        LogitProducts(then, rows) + beyond(now.rates.logits[i], LogitProducts(now, rows), 0);
  }
  return then;
}

StepModel WithInt8Kv(StepModel model) {
  const double bytes = kInt8KvBytes * static_cast<double>(model.shape.kv_values);
  model.shape.kv_token_bytes =
      std::min(model.shape.kv_token_bytes, static_cast<int64_t>(std::llround(bytes)));
  model.rates.single = model.rates.int8_kv;
  return model;
}

}  // namespace

double DecodeRate(const StepModel& model, int64_t batch, int64_t context) {
  return static_cast<double>(batch) / model.Terms(DecodeRows(batch, context)).seconds();
}

double PrefillRate(const StepModel& model, int64_t prompt, int64_t chunk) {
  double seconds = 0;
  for (int64_t start = 0; start < prompt; start += chunk) {
    StepRows rows;
    const int64_t count = std::min(chunk, prompt - start);
    rows.Add(count, start, start + count == prompt);
    seconds += model.Terms(rows).seconds();
  }
  return static_cast<double>(prompt) / seconds;
}

Advice Advise(const StepModel& model, const Load& load) {
  Advice advice;
  for (int64_t batch = 1; batch <= kMostBatch && !advice.ridge_batch; ++batch) {
    const StepTerms terms = model.Terms(DecodeRows(batch, load.context));
    if (terms.compute >= terms.memory) advice.ridge_batch = batch;
  }
  const double now = DecodeRate(model, load.batch, load.context);
  const auto gain = [&load, now](const StepModel& then) {
    return std::max(1.0, DecodeRate(then, load.batch, load.context) / now);
  };
  advice.int8_weights = gain(WithWeights(model, WeightType::kQ8_0));
  advice.int4_weights = gain(WithWeights(model, WeightType::kQ4_0));
  advice.int8_kv = gain(WithInt8Kv(model));
  const double decode = now / static_cast<double>(load.answer);
  const double prefill =
      PrefillRate(model, load.prompt, load.chunk) / static_cast<double>(load.prompt);
  advice.prefill_per_decode = decode / prefill;
  return advice;
}

}  // namespace setu::roofline
