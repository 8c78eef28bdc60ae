// SPDX-License-Identifier: Apache-2.0
#include "common/base/stop_signals.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>

namespace setu {
namespace {

sigset_t TheSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = TheSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

bool StopSignals::WaitFor(Duration timeout) {
  const sigset_t set = TheSignals();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
  const timespec time = {.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
  return sigtimedwait(&set, nullptr, &time) > 0;
}

}  // namespace setu
