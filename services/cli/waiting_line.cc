// SPDX-License-Identifier: Apache-2.0
#include "services/cli/waiting_line.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>

namespace setu::cli {
namespace {

void Count(const std::stop_token& stop, FILE* to, Duration quiet) {
  const auto start = std::chrono::steady_clock::now();
  std::mutex mutex;
  std::condition_variable_any waits;
  std::unique_lock lock(mutex);
  bool shown = false;
  for (Duration at = quiet;; at += std::chrono::seconds(1)) {
    waits.wait_until(lock, stop, start + at, [] { return false; });
    if (stop.stop_requested()) break;
    std::fprintf(to, "\rwaiting for the first token: %d s",
                 static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(at).count()));
    std::fflush(to);
    shown = true;
  }
  if (!shown) return;
  std::fputs("\r\033[K", to);
  std::fflush(to);
}

}  // namespace

WaitingLine::WaitingLine(FILE* to, Duration quiet) {
  if (!isatty(fileno(to))) return;
  counter_ = std::jthread([=](const std::stop_token& stop) { Count(stop, to, quiet); });
}

void WaitingLine::End() {
  if (!counter_.joinable()) return;
  counter_.request_stop();
  counter_.join();
}

}  // namespace setu::cli
