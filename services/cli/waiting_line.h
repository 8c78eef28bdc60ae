// SPDX-License-Identifier: Apache-2.0
// "waiting for the first token: 3 s" on a terminal while nothing comes.
//
//   WaitingLine waiting(stderr);
//   ... waiting.End(); ...   // before anything else is printed
#ifndef SETU_SERVICES_CLI_WAITING_LINE_H_
#define SETU_SERVICES_CLI_WAITING_LINE_H_

#include <cstdio>
#include <stop_token>
#include <thread>

#include "common/base/clock.h"

namespace setu::cli {

class WaitingLine {
 public:
  // Shows itself after `quiet`, and only where `to` is a terminal; `to` outlives it.
  explicit WaitingLine(FILE* to, Duration quiet = std::chrono::seconds(2));
  ~WaitingLine() { End(); }

  // Erases what it shows; more often than once is as good.
  void End();

 private:
  std::jthread counter_;  // none where `to` is no terminal
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_WAITING_LINE_H_
