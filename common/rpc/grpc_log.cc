// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/grpc_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <mutex>
#include <string>

#include "absl/strings/match.h"
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

void Write(Logger::Level level, absl::string_view library, absl::string_view path, int line,
           absl::string_view message) {
  const std::string text =
      absl::StrCat(library, " ", path.substr(path.rfind('/') + 1), ":", line, ": ", message);
  Sink& sink = TheSink();
  const std::lock_guard lock(sink.mutex);
  if (sink.logger != nullptr) sink.logger->Write(level, text);
}

// The process is aborted next, and with it what the log still has to write.
void Flush() {
  Sink& sink = TheSink();
  const std::lock_guard lock(sink.mutex);
  if (sink.logger != nullptr) sink.logger->Flush();
}

void OfGrpc(gpr_log_func_args* line) {
  Write(line->severity == GPR_LOG_SEVERITY_ERROR ? Logger::Level::kError : Logger::Level::kInfo,
        "grpc", line->file, line->line, line->message);
  if (absl::StartsWith(line->message, "assertion failed")) Flush();
}

// What it calls an error is a message that a peer got wrong, who hears of it.
void OfProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                const std::string& message) {
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  Write(fatal ? Logger::Level::kError : Logger::Level::kInfo, "protobuf", file, line, message);
  if (fatal) Flush();
}

void LogTo(Logger* logger) {
  const std::lock_guard lock(TheSink().mutex);
  TheSink().logger = logger;
}

}  // namespace

GrpcLog::GrpcLog(Logger& logger) {
  LogTo(&logger);
  gpr_set_log_function(&OfGrpc);
  google::protobuf::SetLogHandler(&OfProtobuf);
}

GrpcLog::~GrpcLog() { LogTo(nullptr); }

}  // namespace setu::rpc
