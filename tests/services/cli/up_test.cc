// SPDX-License-Identifier: Apache-2.0
// What `setu up` says and how it ends where it cannot start, and where it is told to stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/device.h"
#include "services/cli/held_port.h"
#include "services/cli/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::chrono::seconds kLimit(20);

class Up : public ::testing::Test {
 protected:
  void Start(const std::string& model, const std::vector<std::string>& flags = {}) {
    constexpr char kRedirected[] = R"(out=$1 err=$2; shift 2; exec "$@" >"$out" 2>"$err")";
    ASSERT_TRUE(port_.ok()) << port_.status();
    const std::string out = dir_.Write("out", ""), err = dir_.Write("err", "");
    std::vector<std::string> arguments = {"/bin/sh",
                                          "-c",
                                          kRedirected,
                                          "sh",
                                          out,
                                          err,
                                          program_,
                                          "up",
                                          model,
                                          "--port",
                                          absl::StrCat(port_->number())};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    auto process = Process::Start(arguments);
    ASSERT_TRUE(process.ok()) << process.status();
    up_.emplace(*std::move(process));
  }
  void StartReady(const std::vector<std::string>& flags = {}) {
    Start(test::WriteTinyModel(dir_), flags);
    ASSERT_TRUE(test::WaitUntil(kLimit, [&] {
      return Read("out").find("Setu serves") != std::string::npos;
    })) << Read("err");
  }
  std::string Read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(dir_.File(name)).rdbuf();
    return text.str();
  }
  std::vector<std::string> Lines(const std::string& name) const {
    return absl::StrSplit(Read(name), '\n', absl::SkipEmpty());
  }
  std::string WaitEnd() {
    std::optional<ProcessEnd> end;
    test::WaitUntil(kLimit, [&] { return (end = up_->Ended()).has_value(); });
    return end ? end->Text() : "still running";
  }
  pid_t ChildThatRuns(const std::string& program) const {
    std::ifstream in(absl::StrCat("/proc/", up_->pid(), "/task/", up_->pid(), "/children"));
    for (pid_t pid; in >> pid;) {
      std::error_code gone;
      const auto path = std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), gone);
      if (!gone && path.filename() == program) return pid;
    }
    return -1;
  }

  test::TempDir dir_;
  const absl::StatusOr<HeldPort> port_ = HeldPort::Take();
  std::string program_ = SETU_BINARY_DIR "/setu";
  std::optional<Process> up_;
};

TEST_F(Up, OnABadModelSaysTheCauseAndTheNextStepAlone) {
  Start(dir_.Write("bad.gguf", "this is no model"));
  EXPECT_EQ(WaitEnd(), "exit 1");
  ASSERT_THAT(Lines("err"), SizeIs(2)) << Read("err");
  EXPECT_THAT(Lines("err")[0], HasSubstr("bad.gguf"));
  EXPECT_THAT(Lines("err")[1], HasSubstr("setu model inspect FILE"));
}

TEST_F(Up, OnAModelThatIsNotThereSaysWhereToGetOne) {
  Start("/no/such.gguf");
  EXPECT_EQ(WaitEnd(), "exit 1");
  EXPECT_EQ(Lines("err")[0], "setu up: /no/such.gguf: No such file or directory");
  EXPECT_THAT(Read("err"), HasSubstr("deploy/local/fetch_model.sh"));
}

TEST_F(Up, OnMoreKvMemoryThanThereIsSaysSoBeforeAnythingStarts) {
  Start(test::WriteTinyModel(dir_), {"--kv-memory", "1000TiB"});
  EXPECT_EQ(WaitEnd(), "exit 1");
  ASSERT_THAT(Lines("err"), SizeIs(1)) << Read("err");
  EXPECT_THAT(Read("err"), HasSubstr("--kv-memory is 1048576000MiB for all workers"));
}

TEST_F(Up, OnATakenPortSaysSoBeforeAnythingStarts) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string port = absl::StrCat(ntohs(address.sin_port));

  Start(test::WriteTinyModel(dir_), {"--port", port});
  EXPECT_EQ(WaitEnd(), "exit 1");
  close(fd);
  ASSERT_THAT(Lines("err"), SizeIs(1)) << Read("err");
  EXPECT_THAT(Read("err"), HasSubstr(absl::StrCat("127.0.0.1:", port)));
  EXPECT_THAT(Read("err"), HasSubstr("in use"));
}

TEST_F(Up, OnAHostThatIsNotHereSaysSoBeforeAnythingStarts) {
  Start(test::WriteTinyModel(dir_), {"--host", "192.0.2.1"});
  EXPECT_EQ(WaitEnd(), "exit 1");
  ASSERT_THAT(Lines("err"), SizeIs(1)) << Read("err");
  EXPECT_THAT(Read("err"), HasSubstr("(--host, --port)"));
}

TEST_F(Up, HandsEachWorkerCoresOfItsOwnAndSaysWhich) {
  if (kernels::AvailableCpus().size() < 2) GTEST_SKIP() << "two cores are needed";
  StartReady({"--threads", "2", "--pin-threads", "on"});
  EXPECT_THAT(Read("err"), HasSubstr("each thread on a core of its own"));
  cpu_set_t prefill, decode, both;
  ASSERT_EQ(sched_getaffinity(ChildThatRuns("setu-prefill"), sizeof prefill, &prefill), 0);
  ASSERT_EQ(sched_getaffinity(ChildThatRuns("setu-decode"), sizeof decode, &decode), 0);
  EXPECT_EQ(CPU_COUNT(&prefill), 1);
  EXPECT_EQ(CPU_COUNT(&decode), 1);
  CPU_AND(&both, &prefill, &decode);
  EXPECT_EQ(CPU_COUNT(&both), 0);
  for (const auto& [name, set] : {std::pair("prefill-0", prefill), std::pair("decode-0", decode)}) {
    int cpu = 0;
    while (!CPU_ISSET(cpu, &set)) ++cpu;
    EXPECT_THAT(Lines("err"), Contains(absl::StrCat(name, " on cores ", cpu)));
  }
}

TEST_F(Up, OnMoreThreadsThanCoresToPinThemToSaysSo) {
  Start(test::WriteTinyModel(dir_), {"--threads", "4000", "--pin-threads", "on"});
  EXPECT_EQ(WaitEnd(), "exit 1");
  ASSERT_THAT(Lines("err"), SizeIs(1)) << Read("err");
  EXPECT_THAT(Read("err"), HasSubstr("2 workers with 2000 threads each need 4000 cores"));
}

TEST_F(Up, SuggestsCommandsThatWorkWhereItWasStarted) {
  const auto held = HeldPort::Take();
  ASSERT_TRUE(held.ok());
  const std::string metrics_port = absl::StrCat(held->number());
  StartReady({"--host", "0.0.0.0", "--metrics-port", metrics_port});
  const std::string box = Read("out");
  EXPECT_THAT(box, HasSubstr("on every interface, no authentication"));
  EXPECT_THAT(box, HasSubstr(program_ + " generate --address 127.0.0.1:"));
  EXPECT_THAT(box, Not(HasSubstr("0.0.0.0")));
  EXPECT_THAT(box, HasSubstr("router:    http://127.0.0.1:" + metrics_port + "/metrics"));
  EXPECT_THAT(box, HasSubstr("metrics of prefill-0: http://127.0.0.1:"));
  EXPECT_THAT(box, HasSubstr("metrics of decode-0:  http://127.0.0.1:"));
  up_->Signal(SIGINT);
  EXPECT_EQ(WaitEnd(), "exit 0");
}

TEST_F(Up, OneSignalDrainsAndEndsWell) {
  StartReady();
  up_->Signal(SIGINT);
  EXPECT_EQ(WaitEnd(), "exit 0");
  EXPECT_EQ(Lines("err").back(), "Stopped");
}

// A stopped router does not drain.
TEST_F(Up, ASecondSignalStopsAtOnceWithItsOwnCode) {
  for (const auto& [signal, code] :
       {std::pair(SIGINT, "exit 130"), std::pair(SIGTERM, "exit 143")}) {
    StartReady();
    const pid_t router = ChildThatRuns("setu-router");
    ASSERT_GT(router, 0);
    kill(router, SIGSTOP);
    up_->Signal(SIGINT);
    ASSERT_TRUE(
        test::WaitUntil(kLimit, [&] { return Read("err").find("Draining") != std::string::npos; }));
    up_->Signal(signal);
    EXPECT_EQ(WaitEnd(), code);
    EXPECT_EQ(kill(router, 0), -1) << "it is gone too";
  }
}

// `setu` beside programs that are scripts of the test's own.
class UpOverScripts : public Up {
 protected:
  void StartOver(const std::string& prefill) {
    namespace fs = std::filesystem;
    fs::copy(SETU_BINARY_DIR "/setu", dir_.File("setu"));
    for (const auto& [name, script] : {std::pair("setu-router", std::string("exec sleep 100")),
                                       std::pair("setu-decode", std::string("exec sleep 100")),
                                       std::pair("setu-prefill", prefill)}) {
      fs::permissions(dir_.Write(name, "#!/bin/sh\n" + script + "\n"), fs::perms::owner_all);
    }
    program_ = dir_.File("setu");
    Start(test::WriteTinyModel(dir_));
  }
};

TEST_F(UpOverScripts, ASignalBeforeItIsReadyDrainsToo) {
  StartOver("exec sleep 100");
  ASSERT_TRUE(test::WaitUntil(kLimit, [&] { return ChildThatRuns("sleep") > 0; }));
  up_->Signal(SIGINT);
  EXPECT_EQ(WaitEnd(), "exit 0");
}

TEST_F(UpOverScripts, WhatAWorkerSaysOfItsStartIsFollowedByOneLine) {
  StartOver("echo the cause >&2; exit 3");
  EXPECT_EQ(WaitEnd(), "exit 1");
  const std::vector<std::string> lines = Lines("err");
  ASSERT_THAT(lines, SizeIs(3)) << Read("err");
  EXPECT_THAT(lines[0], HasSubstr("2 workers"));
  EXPECT_EQ(lines[1], "the cause");
  EXPECT_EQ(lines[2],
            "setu up: prefill-0 did not start (exit 3); its last line says why (2 workers share "
            "--kv-memory and --threads: its figures are of one part)");
}

TEST_F(UpOverScripts, AWorkerThatIsKilledAgainAndAgainIsStartedLessAndLessOften) {
  StartOver("kill -9 $$");
  ASSERT_TRUE(test::WaitUntil(
      kLimit, [&] { return Read("err").find("again in 1.0 s") != std::string::npos; }));
  EXPECT_EQ(Lines("err")[1], "prefill-0 ended (signal 9 (Killed)); starting it again in 0.5 s");
  EXPECT_THAT(Lines("err")[2], HasSubstr("memory ran out: give less --kv-memory"));
  up_->Signal(SIGTERM);
  EXPECT_EQ(WaitEnd(), "exit 0");
}

}  // namespace
}  // namespace setu::cli
