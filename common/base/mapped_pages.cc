// SPDX-License-Identifier: Apache-2.0
#include "common/base/mapped_pages.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

namespace setu {
namespace {

constexpr std::string_view kLine =
    "load failed: a page of a mapped file could not be read: the model file was cut while it was "
    "read, or its disk failed; put the whole file back and start again\n";

// Only what may be called anywhere.
void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code == BUS_ADRERR) {
    [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, kLine.data(), kLine.size());
    _exit(1);
  }
  // Broken memory or an address that is none: the same again, and a core.
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
}

}  // namespace

void EndOnUnreadablePages() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace setu
