// SPDX-License-Identifier: Apache-2.0
// Log lines of a process: `2026-01-31T12:00:00.123Z I prefill message key=value`. Passed by
// reference to whoever logs. Never on the step path; prompts, answers and keys never reach a log.
//
//   StderrLogger logger("prefill");
//   logger.Info(absl::StrCat("drained in ", ms, " ms"));
#ifndef SETU_COMMON_LOGGING_LOGGER_H_
#define SETU_COMMON_LOGGING_LOGGER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace setu {

// Any thread. No call but Flush waits for whoever reads the log.
class Logger {
 public:
  enum class Level { kInfo, kWarning, kError };
  virtual ~Logger() = default;
  virtual void Write(Level level, std::string_view message) = 0;
  // Waits until all lines so far are out, a second at most: before the process is ended by force.
  virtual void Flush() {}
  // Lines that were not written and never will be, since the start.
  virtual uint64_t dropped() const { return 0; }
  void Info(std::string_view message) { Write(Level::kInfo, message); }
  void Warning(std::string_view message) { Write(Level::kWarning, message); }
  void Error(std::string_view message) { Write(Level::kError, message); }
};

// To standard error, by a thread of its own: a pipe that nobody reads stops that thread alone. One
// write(2) per line, so lines of several processes on one terminal do not mix. Lines beyond the
// limits are dropped, and the next that has room comes behind one that says how many.
class StderrLogger final : public Logger {
 public:
  // What waits to be written, at most.
  static constexpr size_t kMaxLines = 1024;
  static constexpr size_t kMaxBytes = 1 << 20;

  explicit StderrLogger(std::string component);
  // Flushes; what is not out then is dropped.
  ~StderrLogger() override;
  StderrLogger(const StderrLogger&) = delete;
  StderrLogger& operator=(const StderrLogger&) = delete;

  void Write(Level level, std::string_view message) override;
  void Flush() override;
  uint64_t dropped() const override;

 private:
  class Lines;
  const std::shared_ptr<Lines>
      lines_;  // with the writer, which a blocked write may keep for longer
  std::thread writer_;
};

class NullLogger final : public Logger {
 public:
  void Write(Level, std::string_view) override {}
};

}  // namespace setu

#endif  // SETU_COMMON_LOGGING_LOGGER_H_
