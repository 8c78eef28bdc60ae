// SPDX-License-Identifier: Apache-2.0
// `setu up` as a user runs it: serves, restarts what dies, drains on Ctrl-C, leaves nothing behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel_factory.h"
#include "services/cli/held_port.h"
#include "services/cli/process.h"
#include "tests/support/client.h"
#include "tests/support/tiny_model.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

constexpr std::chrono::seconds kLimit(20);

// Direct children that still run, by the name of their program.
std::map<std::string, pid_t> Children(pid_t parent) {
  std::map<std::string, pid_t> out;
  std::ifstream in(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  for (pid_t pid; in >> pid;) {
    std::error_code gone;
    const auto program = std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), gone);
    if (!gone) out[program.filename()] = pid;
  }
  return out;
}

bool Runs(pid_t pid) { return kill(pid, 0) == 0; }

class Up : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto port = cli::HeldPort::Take();
    ASSERT_TRUE(port.ok());
    auto process =
        cli::Process::Start({SETU_BINARY_DIR "/setu", "up", WriteTinyModel(dir_), "--port",
                             absl::StrCat(port->number()), "--drain-grace", "5s"});
    ASSERT_TRUE(process.ok()) << process.status();
    up_.emplace(*std::move(process));
    stub_ = v1::InferenceService::NewStub(
        rpc::MakeTcpChannelFactory()->Connect(absl::StrCat("127.0.0.1:", port->number())));
    ASSERT_TRUE(WaitUntil(kLimit, [&] { return Answers(); }));
  }
  bool Answers() {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
    const auto reader = stub_->Generate(&context, GreedyText("Hi", 3));
    for (v1::GenerateResponse response; reader->Read(&response);) continue;
    return reader->Finish().ok();
  }
  std::string WaitEnd() {
    std::optional<cli::ProcessEnd> end;
    WaitUntil(kLimit, [&] { return (end = up_->Ended()).has_value(); });
    return end ? end->Text() : "still running";
  }

  TempDir dir_;
  std::optional<cli::Process> up_;
  std::unique_ptr<v1::InferenceService::Stub> stub_;
};

TEST_F(Up, RestartsAWorkerThatDied) {
  for (const char* name : {"setu-decode", "setu-prefill"}) {
    const pid_t before = Children(up_->pid()).at(name);
    kill(before, SIGKILL);
    ASSERT_TRUE(WaitUntil(kLimit, [&] {
      const auto now = Children(up_->pid());
      return now.contains(name) && now.at(name) != before;
    })) << name;
    EXPECT_TRUE(WaitUntil(kLimit, [&] { return Answers(); })) << name;
  }
}

TEST_F(Up, DrainsOnCtrlCAndLeavesNothingBehind) {
  const auto children = Children(up_->pid());
  EXPECT_EQ(children.size(), 3u);
  up_->Signal(SIGINT);
  EXPECT_EQ(WaitEnd(), "exit 0");
  for (const auto& [name, pid] : children) EXPECT_FALSE(Runs(pid)) << name;
}

TEST_F(Up, TakesItsChildrenAlongWhenItIsKilled) {
  const auto children = Children(up_->pid());
  kill(up_->pid(), SIGKILL);  // only itself, not its group
  for (const auto& [name, pid] : children) {
    EXPECT_TRUE(WaitUntil(kLimit, [pid = pid] { return !Runs(pid); })) << name;
  }
}

TEST(UpOnABadModel, EndsAndSaysWhy) {
  TempDir dir;
  const std::string path = dir.Write("bad.gguf", "this is no model");
  auto process = cli::Process::Start({SETU_BINARY_DIR "/setu", "up", path});
  ASSERT_TRUE(process.ok());
  std::optional<cli::ProcessEnd> end;
  ASSERT_TRUE(WaitUntil(kLimit, [&] { return (end = process->Ended()).has_value(); }));
  EXPECT_EQ(end->Text(), "exit 1");
}

}  // namespace
}  // namespace setu::test
