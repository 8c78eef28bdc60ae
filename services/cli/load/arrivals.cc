// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/arrivals.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "services/cli/load/lengths.h"

namespace setu::cli {
namespace {

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::optional<TracedRequest> ParseTraced(absl::string_view line) {
  constexpr double kLongest = 30 * 86400.0;
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(", \t\r"), absl::SkipEmpty());
  double at = 0;
  TracedRequest traced{};
  const auto length = [](absl::string_view word, int32_t* to) {
    return absl::SimpleAtoi(word, to) && *to >= 1 && *to <= Lengths::kMost;
  };
  if (words.size() != 3 || !absl::SimpleAtod(words[0], &at) || !(at >= 0 && at <= kLongest) ||
      !length(words[1], &traced.prompt_tokens) || !length(words[2], &traced.max_tokens)) {
    return {};
  }
  traced.at = Seconds(at);
  return traced;
}

}  // namespace

bool IsOpen(const ArrivalProcess& process) {
  return !std::holds_alternative<Closed>(process) && !std::holds_alternative<Lockstep>(process);
}

absl::StatusOr<Trace> ParseTrace(const std::string& path, absl::string_view text) {
  std::vector<TracedRequest> requests;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::optional<TracedRequest> traced = ParseTraced(line);
    const auto refuse = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", why));
    };
    if (!traced) {
      return refuse("a line is seconds, prompt tokens and answer tokens, such as 0.25 128 64");
    }
    if (!requests.empty() && traced->at < requests.back().at) {
      return refuse("it comes before the line above; sort the file by its first column");
    }
    requests.push_back(*traced);
  }
  if (requests.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": no request"));
  return Trace{std::make_shared<const std::vector<TracedRequest>>(std::move(requests))};
}

ArrivalTimes::ArrivalTimes(ArrivalProcess process, uint64_t seed)
    : process_(std::move(process)), draws_(seed, DrawsOf::kArrivals, 0) {
  SETU_CHECK(IsOpen(process_), "a closed loop has no times of its own");
}

std::optional<Duration> ArrivalTimes::Next() {
  const uint64_t i = next_++;
  if (const auto* trace = std::get_if<Trace>(&process_)) {
    if (i >= trace->requests->size()) return {};
    return (*trace->requests)[i].at;
  }
  if (const auto* poisson = std::get_if<Poisson>(&process_)) {
    seconds_ += draws_.Exponential() / poisson->rate;
    return Seconds(seconds_);
  }
  if (const auto* bursts = std::get_if<Bursts>(&process_)) {
    const auto size = static_cast<uint64_t>(bursts->size);
    return Seconds(static_cast<double>(i / size * size) / bursts->rate);
  }
  return Seconds(static_cast<double>(i) / std::get<Fixed>(process_).rate);
}

}  // namespace setu::cli
