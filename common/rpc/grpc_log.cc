// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace setu::rpc {
namespace {

// gRPC takes a bare function, so that what it logs to must be reachable without an object.
struct Sink {
  std::mutex mutex;
  Logger* logger = nullptr;
};

Sink& TheSink() {
  static Sink sink;
  return sink;
}

void Write(gpr_log_func_args* line) {
  Sink& sink = TheSink();
  const absl::string_view path = line->file;
  const std::string text =
      absl::StrCat("grpc ", path.substr(path.rfind('/') + 1), ":", line->line, ": ", line->message);
  const std::lock_guard lock(sink.mutex);
  if (sink.logger == nullptr) return;
  sink.logger->Write(
      line->severity == GPR_LOG_SEVERITY_ERROR ? Logger::Level::kError : Logger::Level::kInfo,
      text);
}

void LogTo(Logger* logger) {
  const std::lock_guard lock(TheSink().mutex);
  TheSink().logger = logger;
}

}  // namespace

GrpcLog::GrpcLog(Logger& logger) {
  LogTo(&logger);
  gpr_set_log_function(&Write);
}

GrpcLog::~GrpcLog() { LogTo(nullptr); }

}  // namespace setu::rpc
