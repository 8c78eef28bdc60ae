// SPDX-License-Identifier: Apache-2.0
// A logger that keeps its lines for the test, each behind its level's letter: "W worker d is away".
// Any thread.
#ifndef SETU_TESTS_SUPPORT_KEEPING_LOGGER_H_
#define SETU_TESTS_SUPPORT_KEEPING_LOGGER_H_

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/logging/logger.h"

namespace setu::test {

class KeepingLogger final : public Logger {
 public:
  void Write(Level level, std::string_view message) override {
    const char* letter = level == Level::kInfo ? "I " : level == Level::kWarning ? "W " : "E ";
    const std::lock_guard lock(mutex_);
    lines_.push_back(letter + std::string(message));
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  // Those that hold `part`.
  std::vector<std::string> lines(std::string_view part) const {
    std::vector<std::string> found;
    for (const std::string& line : lines()) {
      if (line.find(part) != std::string::npos) found.push_back(line);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_KEEPING_LOGGER_H_
