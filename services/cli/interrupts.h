// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as the end of what is under way, not of the program.
//
//   const InterruptMask held(SIG_BLOCK);  // before the first thread starts: all of them inherit it
//   ...
//   const Interrupt interrupt;
//   client.Generate(request, deadline, on_response, interrupt.token());
//   if (interrupt.came()) ...
#ifndef SETU_SERVICES_CLI_INTERRUPTS_H_
#define SETU_SERVICES_CLI_INTERRUPTS_H_

#include <signal.h>

#include <stop_token>
#include <thread>

namespace setu::cli {

// How this thread, and what it starts, takes SIGINT while one lives: SIG_BLOCK keeps it for an
// Interrupt, SIG_UNBLOCK lets it end the program.
class InterruptMask {
 public:
  explicit InterruptMask(int how);
  ~InterruptMask();
  InterruptMask(const InterruptMask&) = delete;
  InterruptMask& operator=(const InterruptMask&) = delete;

 private:
  sigset_t before_;
};

// While one lives, SIGINT requests a stop of its token. Every other thread has SIGINT blocked.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool came() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
  std::thread watcher_;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_INTERRUPTS_H_
