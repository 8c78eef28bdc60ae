// SPDX-License-Identifier: Apache-2.0
// The numbers by which two loads are compared, each with its value in every round. Pure.
#ifndef SETU_SERVICES_CLI_LOAD_FIGURES_H_
#define SETU_SERVICES_CLI_LOAD_FIGURES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "services/cli/load/tally.h"

namespace setu::cli {

// By name, such as ttft_p50_ms or tokens_per_second. Those that a round has no value for (no
// request was refused) are absent in it.
using Figures = std::map<std::string, double>;
Figures FiguresOf(const Tally& tally);

// Of higher values, whether that is better: rates and shares are, latencies are not.
bool HigherIsBetter(const std::string& figure);

// A figure's values, one for each round that has it.
using FigureRounds = std::map<std::string, std::vector<double>>;
FigureRounds RoundsOf(const std::vector<Tally>& rounds);

double Median(std::vector<double> values);  // of at least one

enum class Verdict {
  kUnknown,      // with a single round on a side, nothing is known of the noise
  kWithinNoise,  // the rounds' ranges meet
  kBetter,
  kWorse
};

struct Difference {
  double base = 0, other = 0;   // medians of the rounds
  std::optional<double> ratio;  // other / base; absent where base is 0
  Verdict verdict = Verdict::kUnknown;
};
Difference Compare(const std::string& figure, const std::vector<double>& base,
                   const std::vector<double>& other);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_FIGURES_H_
