// SPDX-License-Identifier: Apache-2.0
#include "services/cli/process.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace setu::cli {
namespace {

// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void Become(char* const* argv, char* const* environment, const cpu_set_t* cpus,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // it died before the line above
  if (cpus != nullptr && sched_setaffinity(0, sizeof *cpus, cpus) != 0) _exit(126);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(argv[0], argv, environment);
  _exit(127);
}

// Ours without our own variables: a process is told by its flags what it is to do, and SETU_PORT of
// the one that starts it is not its own.
std::vector<char*> ChildEnvironment() {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!absl::StartsWith(*variable, "SETU_")) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

std::string ProcessEnd::Text() const {
  if (signal != 0) return absl::StrCat("signal ", signal, " (", strsignal(signal), ")");
  return absl::StrCat("exit ", code);
}

absl::StatusOr<Process> Process::Start(const std::vector<std::string>& arguments,
                                       std::span<const int> cpus) {
  if (access(arguments[0].c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(arguments[0],
                                            " is not there or not executable; it is "
                                            "built and installed beside setu"));
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::vector<char*> environment = ChildEnvironment();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError(absl::StrCat("fork: ", strerror(errno)));
  if (pid == 0) Become(argv.data(), environment.data(), cpus.empty() ? nullptr : &set, parent);
  setpgid(pid, pid);  // both sides: whoever comes first
  return Process(pid);
}

Process::Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = std::exchange(other.pid_, -1);
  }
  return *this;
}

Process::~Process() { Kill(); }

void Process::Kill() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Process::Signal(int signal) const {
  if (pid_ >= 0) kill(pid_, signal);
}

std::optional<ProcessEnd> Process::Ended() {
  int status = 0;
  if (pid_ < 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  if (WIFSIGNALED(status)) return ProcessEnd{.signal = WTERMSIG(status)};
  return ProcessEnd{.code = WEXITSTATUS(status)};
}

}  // namespace setu::cli
