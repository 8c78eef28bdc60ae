// SPDX-License-Identifier: Apache-2.0
#include "common/worker/roofline_report.h"

#include "common/metrics/catalogue.h"

namespace setu::worker {
namespace {

v1::Limit ToProto(roofline::Limit limit) {
  switch (limit) {
    case roofline::Limit::kIdle:
      return v1::LIMIT_IDLE;
    case roofline::Limit::kStarved:
      return v1::LIMIT_STARVED;
    case roofline::Limit::kLinkBound:
      return v1::LIMIT_LINK_BOUND;
    case roofline::Limit::kOverheadBound:
      return v1::LIMIT_OVERHEAD_BOUND;
    case roofline::Limit::kMemoryBound:
      return v1::LIMIT_MEMORY_BOUND;
    case roofline::Limit::kComputeBound:
      return v1::LIMIT_COMPUTE_BOUND;
  }
  return v1::LIMIT_UNSPECIFIED;
}

}  // namespace

v1::Roofline ToProto(const roofline::Figures& figures) {
  v1::Roofline message;
  message.set_limit(ToProto(figures.verdict.limit));
  message.set_bandwidth_share(figures.verdict.bandwidth_share);
  message.set_arithmetic_share(figures.verdict.arithmetic_share);
  message.set_intensity(figures.verdict.intensity);
  message.set_ridge(figures.peaks.ridge());
  message.set_cache_resident(figures.peaks.cache_resident());
  message.set_link_bytes_per_second(figures.link_bytes_per_second);
  return message;
}

void AddRoofline(const roofline::Figures& figures, metrics::Scrape& scrape) {
  using namespace metrics::catalogue;
  for (const roofline::Limit limit : roofline::kLimits) {
    scrape.Add(kRooflineLimit, limit == figures.verdict.limit ? 1 : 0, Name(limit));
  }
  scrape.Add(kRooflineBytes, figures.bytes);
  scrape.Add(kRooflineOperations, figures.operations);
  scrape.Add(kRooflineBandwidthPeak, figures.peaks.bytes_per_second);
  scrape.Add(kRooflineArithmeticPeak, figures.peaks.operations_per_second);
  scrape.Add(kRooflineBandwidthShare, figures.verdict.bandwidth_share);
  scrape.Add(kRooflineArithmeticShare, figures.verdict.arithmetic_share);
}

}  // namespace setu::worker
