// SPDX-License-Identifier: Apache-2.0
// A child process in a group of its own that dies with the thread that started it.
//
//   Process process = *Process::Start({"/usr/bin/setu-decode", "--model", "m.gguf"});
//   process.Signal(SIGTERM);
//   std::optional<ProcessEnd> end = process.Ended();
#ifndef SETU_SERVICES_CLI_PROCESS_H_
#define SETU_SERVICES_CLI_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace setu::cli {

// How a process ended: by a signal, or by itself with an exit code.
struct ProcessEnd {
  int signal = 0;  // 0: none
  int code = 0;
  std::string Text() const;  // "exit 0", "signal 9 (Killed)"
  bool operator==(const ProcessEnd&) const = default;
};

class Process {
 public:
  // `arguments[0]` is the program's path. Starts with no signal blocked and without SETU_*
  // variables: what is said to us is not said to it.
  // It may run on `cpus` alone; empty: on all of ours.
  static absl::StatusOr<Process> Start(const std::vector<std::string>& arguments,
                                       std::span<const int> cpus = {});
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();  // kills and reaps what still runs

  void Signal(int signal) const;
  // How it ended, once it has; empty while it runs. Never blocks.
  std::optional<ProcessEnd> Ended();
  pid_t pid() const { return pid_; }

 private:
  explicit Process(pid_t pid) : pid_(pid) {}
  void Kill();
  pid_t pid_ = -1;  // -1: reaped
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_PROCESS_H_
