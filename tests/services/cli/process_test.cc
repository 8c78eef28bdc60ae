// SPDX-License-Identifier: Apache-2.0
#include "services/cli/process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

namespace setu::cli {
namespace {

// Blocks until the child has ended, by the kernel's own word.
std::string EndOf(Process& process) {
  siginfo_t info;
  waitid(P_PID, process.pid(), &info, WEXITED | WNOWAIT);
  const auto end = process.Ended();
  return end ? end->Text() : "still running";
}

TEST(Process, SaysHowItExited) {
  auto process = Process::Start({"/bin/sh", "-c", "exit 3"});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(EndOf(*process), "exit 3");
}

TEST(Process, SaysWhichSignalKilledIt) {
  auto process = Process::Start({"/bin/sleep", "100"});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Ended(), std::nullopt);
  process->Signal(SIGKILL);
  EXPECT_EQ(EndOf(*process), "signal 9 (Killed)");
}

TEST(Process, DiesWithItsOwner) {
  pid_t pid;
  {
    auto process = Process::Start({"/bin/sleep", "100"});
    ASSERT_TRUE(process.ok());
    pid = process->pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(Process, HasAGroupOfItsOwn) {
  auto process = Process::Start({"/bin/sleep", "100"});
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(getpgid(process->pid()), process->pid());
}

TEST(Process, MayRunOnTheCoresThatItIsGivenAlone) {
  cpu_set_t ours;
  ASSERT_EQ(sched_getaffinity(0, sizeof ours, &ours), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &ours)) --last;
  const auto process = Process::Start({"/bin/sleep", "100"}, std::span(&last, 1));
  ASSERT_TRUE(process.ok());
  cpu_set_t theirs;
  // Until the child has come to it.
  do {
    ASSERT_EQ(sched_getaffinity(process->pid(), sizeof theirs, &theirs), 0);
  } while (CPU_COUNT(&ours) > 1 && CPU_COUNT(&theirs) != 1);
  EXPECT_TRUE(CPU_ISSET(last, &theirs));
  EXPECT_EQ(CPU_COUNT(&theirs), 1);
}

TEST(Process, AMissingProgramIsAnErrorThatNamesIt) {
  const auto process = Process::Start({"/no/such/program"});
  EXPECT_EQ(process.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(process.status().message().find("/no/such/program"), std::string::npos);
}

TEST(Process, KnowsTheEnvironmentWithoutOurOwnVariables) {
  setenv("SETU_PORT", "6123", 1);
  setenv("OTHER_PORT", "6124", 1);
  auto process =
      Process::Start({"/bin/sh", "-c", "test -z \"$SETU_PORT\" -a \"$OTHER_PORT\" = 6124"});
  unsetenv("SETU_PORT");
  unsetenv("OTHER_PORT");
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(EndOf(*process), "exit 0");
}

}  // namespace
}  // namespace setu::cli
