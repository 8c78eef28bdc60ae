// SPDX-License-Identifier: Apache-2.0
// Latencies of any number in a bounded size: buckets that widen by 0.7 %, so that a percentile is
// off by at most 0.35 %. Mean, least and most are exact. Milliseconds. Pure.
//
//   LatencyHistogram first_token;
//   first_token.Record(12.5);
//   first_token.Percentile(0.99)
#ifndef SETU_SERVICES_CLI_LOAD_HISTOGRAM_H_
#define SETU_SERVICES_CLI_LOAD_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace setu::cli {

class LatencyHistogram {
 public:
  void Record(double ms, int64_t times = 1);
  void Merge(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  double most() const { return most_; }
  // Nearest rank: the value at ceil(share * count); 0 where nothing was recorded.
  double Percentile(double share) const;
  // (milliseconds, share of the values up to there), ascending; one for each bucket in use.
  std::vector<std::pair<double, double>> Cumulative() const;

 private:
  double MiddleOf(size_t bucket) const;

  std::vector<int64_t> buckets_;  // as many as the largest value needs; about 3,600 for a day
  int64_t count_ = 0;
  double sum_ = 0, least_ = 0, most_ = 0;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_HISTOGRAM_H_
