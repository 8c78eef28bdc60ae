// SPDX-License-Identifier: Apache-2.0
#include "services/cli/interrupts.h"

#include <initializer_list>

namespace setu::cli {
namespace {

// Sent to a watcher to tell it that nothing is left to watch.
constexpr int kNoMore = SIGUSR1;

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

InterruptMask::InterruptMask(int how) {
  const sigset_t set = SetOf({SIGINT});
  pthread_sigmask(how, &set, &before_);
}

InterruptMask::~InterruptMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

Interrupt::Interrupt() {
  const sigset_t taken = SetOf({SIGINT, kNoMore});
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &taken, &before);  // the watcher is born with both blocked
  watcher_ = std::thread([this, taken] {
    int signal = 0;
    sigwait(&taken, &signal);
    if (signal == SIGINT) source_.request_stop();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Interrupt::~Interrupt() {
  pthread_kill(watcher_.native_handle(), kNoMore);
  watcher_.join();
}

}  // namespace setu::cli
