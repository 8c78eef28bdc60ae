// SPDX-License-Identifier: Apache-2.0
#include "services/router/worker_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "tests/support/fake_workers.h"
#include "tests/support/loop_thread.h"

namespace setu::router {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Lets a test wait for tries to reach workers.
class CountingNetwork final : public rpc::ChannelFactory {
 public:
  explicit CountingNetwork(rpc::ChannelFactory& network) : network_(network) {}
  std::shared_ptr<grpc::Channel> Connect(const std::string& address) override {
    ++connects;
    return network_.Connect(address);
  }
  std::atomic<int> connects = 0;

 private:
  rpc::ChannelFactory& network_;
};

class KeepingLogger final : public Logger {
 public:
  void Write(Level, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

class WorkerDirectoryTest : public ::testing::Test {
 protected:
  void Start(const DirectoryOptions& options) {
    owner_.Do([&] {
      directory_ = std::make_unique<WorkerDirectory>(owner_.loop, network_, logger_, options,
                                                     [this] { changed_.notify_all(); });
    });
  }
  void TearDown() override {
    owner_.Do([&] { directory_ = nullptr; });
    owner_.Stop();
  }

  // Looks on the owner's thread, again after each change.
  void WaitUntil(const std::function<bool(const WorkerDirectory&)>& holds) {
    std::unique_lock lock(mutex_);
    while (!owner_.Do([&] { return holds(*directory_); })) {
      changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
  }
  void WaitPairs(size_t prefills, size_t decodes) {
    WaitUntil([=](const WorkerDirectory& directory) {
      const Workers usable = directory.Usable();
      return usable.prefill.size() == prefills && usable.decode.size() == decodes;
    });
  }
  absl::Status NoPair() {
    return owner_.Do([&] { return directory_->NoPair(); });
  }

  test::FakeWorkers workers_;
  SteadyClock clock_;
  CountingNetwork network_{workers_.network()};
  KeepingLogger logger_;  // the owner's thread writes
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<WorkerDirectory> directory_;
  testing::LoopThread owner_{clock_};
};

TEST_F(WorkerDirectoryTest, SeesWorkersAndTheirNewestReport) {
  workers_.AddPrefill("p");
  test::FakeDecode& decode = workers_.AddDecode("d");
  Start({.prefill = {"p"}, .decode = {"d"}});
  WaitPairs(1, 1);
  owner_.Do([&] {
    EXPECT_TRUE(directory_->Usable().HasPair());
    EXPECT_EQ(directory_->PoolTokens(), 1024 * 16);
    EXPECT_EQ(ViewOf(directory_->Usable().decode.at(0), TimePoint()).grant_output_tokens, 256);
  });
  worker::v1::WatchLoadResponse load = decode.load();
  load.set_blocks_free(7);
  decode.Report(load);
  WaitUntil([](const WorkerDirectory& directory) {
    const Workers usable = directory.Usable();
    return ViewOf(usable.decode.at(0), TimePoint()).blocks_free == 7;
  });
}

TEST_F(WorkerDirectoryTest, LeavesOutWhatIsNotReadyOrDrains) {
  workers_.AddPrefill("p");
  test::FakeDecode& decode = workers_.AddDecode("d");
  Start({.prefill = {"p"}, .decode = {"d"}});
  WaitPairs(1, 1);
  worker::v1::WatchLoadResponse load = decode.load();
  load.set_ready(false);
  decode.Report(load);
  WaitPairs(1, 0);
  EXPECT_THAT(NoPair().message(), HasSubstr("no decode worker"));
  load.set_ready(true);
  decode.Report(load);
  WaitPairs(1, 1);
  load.set_draining(true);
  decode.Report(load);
  WaitPairs(1, 0);
}

TEST_F(WorkerDirectoryTest, AWorkerThatComesBackIsAnotherOneAndOwesNothing) {
  workers_.AddPrefill("p");
  test::FakeDecode& decode = workers_.AddDecode("d");
  Start({.prefill = {"p"}, .decode = {"d"}});
  WaitPairs(1, 1);
  Claim claim;
  owner_.Do([&] {
    claim = Claim(directory_->Usable().decode[0].worker, Claimed{.blocks = 9, .sequences = 1});
    directory_->Avoid(*claim.worker(), std::chrono::hours(1));
  });
  const auto view = [&] { return ViewOf(directory_->Usable().decode[0], clock_.Now()); };
  owner_.Do([&] {
    EXPECT_EQ(view().claimed.blocks, 9);
    EXPECT_TRUE(view().avoid);
  });
  decode.Kill();
  WaitPairs(1, 0);
  decode.Restart();
  WaitPairs(1, 1);
  owner_.Do([&] {
    EXPECT_EQ(view().claimed.blocks, 0);
    EXPECT_FALSE(view().avoid);
    claim.Release();
    EXPECT_EQ(view().claimed.blocks, 0);
  });
}

TEST_F(WorkerDirectoryTest, LogsChangesAndNotTries) {
  const auto tries = [&](int more) {
    WaitUntil([&, until = network_.connects + more](const WorkerDirectory&) {
      return network_.connects >= until;
    });
  };
  const auto lines = [&] { return owner_.Do([&] { return logger_.lines; }); };
  Start({.prefill = {}, .decode = {"d"}});
  tries(3);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("decode worker d is not in sight yet: ")));
  test::FakeDecode& decode = workers_.AddDecode("d");
  WaitPairs(0, 1);
  EXPECT_THAT(lines(), ElementsAre(_, HasSubstr("worker d is in sight")));
  decode.Kill();
  tries(3);
  EXPECT_THAT(lines(), ElementsAre(_, _, HasSubstr("worker d is out of sight: ")));
}

TEST_F(WorkerDirectoryTest, NamesTwoWorkersThatDoNotFit) {
  workers_.AddPrefill("p");
  workers_.fingerprint.set_numerics("digits/r1");
  workers_.AddDecode("d");
  Start({.prefill = {"p"}, .decode = {"d"}});
  WaitPairs(1, 1);
  owner_.Do([&] { EXPECT_FALSE(directory_->Usable().HasPair()); });
  EXPECT_EQ(NoPair().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(NoPair().message(), HasSubstr("prefill worker p and decode worker d"));
  EXPECT_THAT(NoPair().message(), HasSubstr("digits/r1"));
}

TEST_F(WorkerDirectoryTest, GroupsWorkersByWhatFits) {
  workers_.AddPrefill("p0");
  workers_.AddDecode("d0");
  workers_.fingerprint.set_model(9);
  workers_.AddPrefill("p1");
  workers_.AddDecode("d1");
  Start({.prefill = {"p0", "p1"}, .decode = {"d0", "d1"}});
  WaitPairs(2, 2);
  owner_.Do([&] {
    const Workers usable = directory_->Usable();
    EXPECT_NE(usable.prefill[0].fit, usable.prefill[1].fit);
    EXPECT_EQ(usable.prefill[0].fit, usable.decode[0].fit);
    EXPECT_EQ(usable.prefill[1].fit, usable.decode[1].fit);
  });
}

TEST_F(WorkerDirectoryTest, AWorkerListedTwiceOrAsTheWrongKindCountsOnce) {
  workers_.AddPrefill("p");
  workers_.AddDecode("d");
  DirectoryOptions options;
  options.prefill = {"p", "d"};
  options.decode = {"name:1"};
  options.lookup = [](const std::string&) { return std::vector<std::string>{"d"}; };
  Start(options);
  WaitPairs(1, 1);
}

TEST_F(WorkerDirectoryTest, FollowsANameWhoseAddressesChange) {
  workers_.AddPrefill("p");
  workers_.AddDecode("d0");
  workers_.AddDecode("d1");
  auto step = std::make_shared<std::atomic<int>>(0);
  DirectoryOptions options;
  options.prefill = {"p"};
  options.decode = {"decode:1"};
  options.resolve_interval = std::chrono::milliseconds(1);
  options.lookup = [step](const std::string&) -> absl::StatusOr<std::vector<std::string>> {
    switch (step->load()) {
      case 0:
        return std::vector<std::string>{"d0", "d1"};
      case 1:
        return absl::UnavailableError("the name server is away");
      default:
        return std::vector<std::string>{"d1"};
    }
  };
  Start(options);
  WaitPairs(1, 2);
  *step = 1;
  WaitPairs(1, 2);
  *step = 2;
  WaitPairs(1, 1);
  owner_.Do([&] { EXPECT_EQ(directory_->Usable().decode[0].worker->address, "d1"); });
}

}  // namespace
}  // namespace setu::router
