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
  return *this;
}

StepTerms StepModel::Terms(const StepRows& rows) const {
  const StepWork work = WorkOf(shape, rows);
  return {.memory = work.bytes() / peaks.bytes_per_second,
          .compute = rates.ProductSeconds(shape, rows) + rates.AttentionSeconds(work, rows),
          .fixed = fixed_per_layer * static_cast<double>(shape.layers)};
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
