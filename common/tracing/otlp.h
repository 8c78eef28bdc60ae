// SPDX-License-Identifier: Apache-2.0
// Spans in the words of OTLP. Pure.
//
//   const ExportTraceServiceRequest request = ToOtlp(spans, resource, unix_offset);
#ifndef SETU_COMMON_TRACING_OTLP_H_
#define SETU_COMMON_TRACING_OTLP_H_

#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/tracing/span.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"

namespace setu::tracing {

// Whose spans they are: service.name and what else tells a process from others.
using Resource = std::vector<Attribute>;

// `unix_offset`: what our clock must be moved by to count from 1970.
opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest ToOtlp(
    std::span<const Span> spans, const Resource& resource, Duration unix_offset);

}  // namespace setu::tracing

#endif  // SETU_COMMON_TRACING_OTLP_H_
