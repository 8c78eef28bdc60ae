// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/advice.h"

#include <algorithm>

namespace setu::roofline {
namespace {

constexpr double kQ8Bytes = 34.0 / 32, kQ4Bytes = 18.0 / 32;  // of a weight
constexpr double kInt8KvBytes = 1.0 + 4.0 / 64;  // of a value, with the float scale of a head of 64

// Decode tokens/s as a multiple of the present, with other sizes of what a step reads. Computing is
// taken to cost the same.
double Gain(const StepModel& model, const Load& load, double weights, double kv) {
  const StepRows rows = DecodeRows(load.batch, load.context);
  const StepWork work = WorkOf(model.shape, rows);
  const StepTerms now = model.Terms(rows);
  StepTerms then = now;
  then.memory = (weights * work.weight_bytes + kv * (work.kv_read_bytes + work.kv_write_bytes)) /
                model.peaks.bytes_per_second;
  return std::max(1.0, now.seconds() / then.seconds());
}

double BytesPerWeight(const ModelShape& shape) {
  double values = 0;
  for (const FormatValues& format : shape.formats) {
    values += static_cast<double>(format.layers + format.logits);
  }
  return static_cast<double>(shape.layer_bytes + shape.logit_bytes) / values;
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
  const double weight = BytesPerWeight(model.shape);
  advice.int8_weights = Gain(model, load, std::min(1.0, kQ8Bytes / weight), 1.0);
  advice.int4_weights = Gain(model, load, std::min(1.0, kQ4Bytes / weight), 1.0);
  const double kv =
      static_cast<double>(model.shape.kv_token_bytes) / static_cast<double>(model.shape.kv_values);
  advice.int8_kv = Gain(model, load, 1.0, std::min(1.0, kInt8KvBytes / kv));
  const double decode =
      DecodeRate(model, load.batch, load.context) / static_cast<double>(load.answer);
  const double prefill =
      PrefillRate(model, load.prompt, load.chunk) / static_cast<double>(load.prompt);
  advice.prefill_per_decode = decode / prefill;
  return advice;
}

}  // namespace setu::roofline
