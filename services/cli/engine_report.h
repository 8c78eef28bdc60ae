// SPDX-License-Identifier: Apache-2.0
// What `setu bench engine` measured, beside what the machine could do, and how it is shown. Pure.
//
//   EngineReport report = {.machine = {...}, .peaks = peaks};
//   report.rows.push_back({"decode x16", 16, rounds, work, terms});
//   report.Raise();                                   // a kernel beat the probe: that is the peak
//   report.Text(), report.Csv(), report.Json(), RooflinePlot(report)
#ifndef SETU_SERVICES_CLI_ENGINE_REPORT_H_
#define SETU_SERVICES_CLI_ENGINE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/roofline/peaks.h"
#include "common/roofline/step_model.h"
#include "common/roofline/step_work.h"

namespace setu::cli {

struct EngineRound {
  double seconds = 0;                // of a pass
  double read_bytes_per_second = 0;  // of the weights, between its passes
};

// One case: a pass is the steps that are timed together.
struct EngineRow {
  std::string name;                 // "prefill 512", "decode x16"
  double tokens = 0;                // of a pass
  std::vector<EngineRound> rounds;  // the fastest first; at least one
  roofline::StepWork work;          // of a pass: exact bytes and operations
  roofline::StepTerms terms;        // of a pass, predicted

  double median() const { return rounds[rounds.size() / 2].seconds; }
  double best() const { return rounds.front().seconds; }
  double tokens_per_second() const { return tokens / median(); }
  double bandwidth() const { return work.bytes() / median(); }
  double arithmetic() const { return work.operations() / median(); }
  double intensity() const { return work.operations() / work.bytes(); }
};

struct EngineReport {
  std::string cpu, huge_pages, numerics, isa, model, quantization;
  int32_t cores = 0, threads = 0;
  double load = 0;           // of the machine, before the run
  int64_t weight_bytes = 0;  // packed
  int64_t huge_page_bytes = 0;
  int32_t context = 0;  // tokens before a decoded one
  roofline::Peaks peaks;
  std::vector<EngineRow> rows;

  // Peaks that a row's best round passed become that.
  void Raise();
  // Of the hardware's least time for the row's bytes and operations: 1 is on the roof.
  double RoofShare(const EngineRow& row) const;
  // The same where memory gives what it gave between the passes, as the median of the rounds: on a
  // machine that others share, memory is faster in some moments than in others.
  double RoofShareBeside(const EngineRow& row) const;

  std::string Head() const;  // lines about machine, engine and model
  std::string Text() const;  // the table
  std::string Csv() const;
  std::string Json() const;
};

// Log-log: operations per second over operations per byte, both roofs, the ridge, a labelled point
// per row. Readable on light and dark ground.
std::string RooflinePlot(const EngineReport& report);  // an SVG file; roofline_plot.cc

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_ENGINE_REPORT_H_
