// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/step_model.h"

#include "common/roofline/host_lock.h"
#include "common/roofline/measure_kernels.h"

namespace setu::roofline {
namespace {

constexpr Duration kLockWait = std::chrono::seconds(1);

}  // namespace

StepTerms& StepTerms::operator+=(const StepTerms& other) {
  memory += other.memory;
  compute += other.compute;
  fixed += other.fixed;
  stall += other.stall;
  return *this;
}

StepTerms StepModel::Unfixed(const StepRows& rows) const {
  const StepWork work = WorkOf(shape, rows);
  const auto count = static_cast<double>(shape.layers), row_count = static_cast<double>(rows.rows);
  const auto logit_rows = static_cast<double>(rows.logits);
  const auto read = [this](double bytes) { return bytes / peaks.bytes_per_second; };
  const double attended = count * rates.AttentionSeconds(rows);
  const double passed =
      std::max(count * rates.LayerSeconds(row_count), read(shape.layer_bytes)) +
      std::max(rates.LogitSeconds(logit_rows), read(rows.logits > 0 ? shape.logit_bytes : 0)) +
      std::max(attended, read(work.kv_read_bytes + work.kv_write_bytes));
  StepTerms terms = {.memory = read(work.bytes()),
                     .compute = rates.LayerProducts(shape, row_count) +
                                rates.LogitProducts(shape, logit_rows) + attended};
  terms.stall = std::max(0.0, passed - std::max(terms.memory, terms.compute));
  return terms;
}

double StepModel::FixedPerLayer() const {
  return Unfixed(DecodeRows(1, 0)).stall / static_cast<double>(shape.layers);
}

StepTerms StepModel::Terms(const StepRows& rows) const {
  StepTerms terms = Unfixed(rows);
  terms.fixed = std::min(FixedPerLayer() * static_cast<double>(shape.layers), terms.stall);
  terms.stall -= terms.fixed;
  return terms;
}

double StepModel::RoofSeconds(const StepRows& rows) const {
  const StepWork work = WorkOf(shape, rows);
  return std::max(work.bytes() / peaks.bytes_per_second,
                  work.operations() / peaks.operations_per_second);
}

StepModel MeasureStepModel(engine::ModelRunner& runner) {
  const HostLock lock(ProbeLockPath(), kLockWait);
  StepModel model;
  model.shape = ShapeOf(runner.config(), runner.weights(), runner.fingerprint().layout);
  model.peaks = MeasurePeaks(runner.ops(), runner.weights());
  model.rates = MeasureKernels(runner, model.peaks.l3_bytes);
  return model;
}

}  // namespace setu::roofline
