// SPDX-License-Identifier: Apache-2.0
// A tracer whose traces a test reads. Any thread.
//
//   TraceKeeper traces_;
//   options_.tracer = &traces_.tracer();
#ifndef SETU_TESTS_SERVICES_ROUTER_TRACE_KEEPER_H_
#define SETU_TESTS_SERVICES_ROUTER_TRACE_KEEPER_H_

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "services/router/request_tracer.h"

namespace setu::router {

class TraceKeeper {
 public:
  using Trace = std::vector<tracing::Span>;

  RequestTracer& tracer() { return tracer_; }
  std::vector<Trace> all() const {
    const std::lock_guard lock(mutex_);
    return traces_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Trace> traces_;
  uint64_t next_id_ = 1;
  RequestTracer tracer_{[this] { return next_id_++; },
                        [this](Trace trace) {
                          const std::lock_guard lock(mutex_);
                          traces_.push_back(std::move(trace));
                        }};
};

}  // namespace setu::router

#endif  // SETU_TESTS_SERVICES_ROUTER_TRACE_KEEPER_H_
