// SPDX-License-Identifier: Apache-2.0
// What holds a worker (common/roofline), told to routers and to Prometheus.
//
//   *report.mutable_roofline() = ToProto(snapshot.roofline);
//   AddRoofline(snapshot.roofline, scrape);
#ifndef SETU_COMMON_WORKER_ROOFLINE_REPORT_H_
#define SETU_COMMON_WORKER_ROOFLINE_REPORT_H_

#include "common/metrics/scrape.h"
#include "common/roofline/meter.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::worker {

v1::Roofline ToProto(const roofline::Figures& figures);
void AddRoofline(const roofline::Figures& figures, metrics::Scrape& scrape);

}  // namespace setu::worker

#endif  // SETU_COMMON_WORKER_ROOFLINE_REPORT_H_
