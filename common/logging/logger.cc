// SPDX-License-Identifier: Apache-2.0
#include "common/logging/logger.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace setu {
namespace {

constexpr std::chrono::seconds kPatience(1);  // with whoever reads the log, at the end

std::string Line(const std::string& component, Logger::Level level, std::string_view message) {
  constexpr const char* kLetters[] = {" I ", " W ", " E "};
  std::string line =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()),
                   kLetters[static_cast<int>(level)], component, " ");
  // A name that came from outside must not begin a line of its own.
  for (char c : message) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return line += '\n';
}

// Whether all of it was written. Waits for as long as that takes, also where another process with
// the same terminal or pipe made it non-blocking.
bool WriteWhole(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written >= 0) {
      line.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd log{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      poll(&log, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

// The lines on their way from those who log to the writer. The mutex is never held for a write.
class StderrLogger::Lines {
 public:
  explicit Lines(std::string component) : component_(std::move(component)) {}

  void Add(Level level, std::string_view message) {
    std::string line = Line(component_, level, message);
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMaxLines || bytes_ + line.size() > kMaxBytes) {
      ++dropped_;
      return;
    }
    TellDropped();
    Push({.text = std::move(line)});
  }

  // Whether all are out before the time is over.
  bool WaitWritten(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    TellDropped();
    return changed_.wait_for(lock, limit, [&] { return lines_.empty(); });
  }

  // Until End, which a write that is under way may outlast.
  void WriteUntilEnd() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ended_ || !lines_.empty(); });
      if (ended_) return;
      const Entry& entry = lines_.front();
      lock.unlock();
      const bool written = WriteWhole(entry.text);
      lock.lock();
      if (!written) entry.tells > 0 ? told_ -= entry.tells : ++dropped_;
      bytes_ -= entry.text.size();
      lines_.pop_front();
      changed_.notify_all();
    }
  }

  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  struct Entry {
    std::string text;
    uint64_t tells = 0;  // dropped lines that it speaks of
  };

  // Stands where the lines would have stood; beyond the limits by itself alone.
  void TellDropped() {
    const uint64_t untold = dropped_ - told_;
    if (untold == 0) return;
    told_ = dropped_;
    Push({.text = Line(component_, Level::kWarning,
                       absl::StrCat(untold,
                                    " log lines were lost here: nobody reads them, or they "
                                    "cannot be written")),
          .tells = untold});
  }

  void Push(Entry entry) {
    bytes_ += entry.text.size();
    lines_.push_back(std::move(entry));
    changed_.notify_all();
  }

  const std::string component_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> lines_;  // the first is the one being written
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
  uint64_t told_ = 0;  // of those
  bool ended_ = false;
};

StderrLogger::StderrLogger(std::string component)
    : lines_(std::make_shared<Lines>(std::move(component))) {
  writer_ = std::thread([lines = lines_] {
    // Signals are for others; of a pipe without a reader the write tells.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    lines->WriteUntilEnd();
  });
}

StderrLogger::~StderrLogger() {
  const bool written = lines_->WaitWritten(kPatience);
  lines_->End();
  // A write that nobody lets through ends with the process.
  written ? writer_.join() : writer_.detach();
}

void StderrLogger::Write(Level level, std::string_view message) { lines_->Add(level, message); }

void StderrLogger::Flush() { lines_->WaitWritten(kPatience); }

uint64_t StderrLogger::dropped() const { return lines_->dropped(); }

}  // namespace setu
