// SPDX-License-Identifier: Apache-2.0
// Log lines of a process: `2026-01-31T12:00:00.123Z I prefill message key=value`. Passed by
// reference to whoever logs. Never on the step path; prompts, answers and keys never reach a log.
//
//   StderrLogger logger("prefill");
//   logger.Info(absl::StrCat("drained in ", ms, " ms"));
#ifndef SETU_COMMON_LOGGING_LOGGER_H_
#define SETU_COMMON_LOGGING_LOGGER_H_

#include <string>
#include <string_view>
#include <utility>

namespace setu {

class Logger {
 public:
  enum class Level { kInfo, kWarning, kError };
  virtual ~Logger() = default;
  virtual void Write(Level level, std::string_view message) = 0;
  void Info(std::string_view message) { Write(Level::kInfo, message); }
  void Warning(std::string_view message) { Write(Level::kWarning, message); }
  void Error(std::string_view message) { Write(Level::kError, message); }
};

// One write(2) per line, so lines of several processes on one terminal do not mix.
class StderrLogger final : public Logger {
 public:
  explicit StderrLogger(std::string component) : component_(std::move(component)) {}
  void Write(Level level, std::string_view message) override;

 private:
  std::string component_;
};

class NullLogger final : public Logger {
 public:
  void Write(Level, std::string_view) override {}
};

}  // namespace setu

#endif  // SETU_COMMON_LOGGING_LOGGER_H_
