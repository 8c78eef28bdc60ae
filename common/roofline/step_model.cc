// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/step_model.h"

#include "common/roofline/host_lock.h"
#include "common/roofline/timing.h"

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

StepTerms StepModel::Terms(const StepRows& rows) const {
  const StepWork work = WorkOf(shape, rows);
  const double computed = rates.ProductSeconds(shape, rows);
  const double attended = rates.AttentionSeconds(work, rows);
  StepTerms terms = {.memory = work.bytes() / peaks.bytes_per_second,
                     .compute = computed + attended,
                     .fixed = fixed_per_layer * static_cast<double>(shape.layers)};
  const double products = std::max(
      {computed, rates.StreamedSeconds(shape, rows), work.weight_bytes / peaks.bytes_per_second});
  const double attention =
      std::max(attended, (work.kv_read_bytes + work.kv_write_bytes) / peaks.bytes_per_second);
  terms.stall = std::max(0.0, products + attention - std::max(terms.memory, terms.compute));
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
  const engine::TimedStep& step = runner.fastest_step();
  if (step.took == Duration{}) return model;
  const StepRows rows = DecodeRows(1, step.start);
  model.peaks.Raise(WorkOf(model.shape, rows), Seconds(step.took));
  const double beyond = Seconds(step.took) - model.Terms(rows).seconds();
  model.fixed_per_layer = std::max(0.0, beyond / static_cast<double>(model.shape.layers));
  return model;
}

}  // namespace setu::roofline
