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
#include "tests/support/keeping_logger.h"
#include "tests/support/loop_thread.h"

namespace setu::router {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using worker::v1::ROLE_DECODE;
using worker::v1::ROLE_PREFILL;

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

// The steady clock, which a test may put forward.
class AdvancedClock final : public Clock {
 public:
  TimePoint Now() const override { return SteadyClock().Now() + Duration(ahead_.load()); }
  void Advance(Duration by) { ahead_ += by.count(); }

 private:
  std::atomic<Duration::rep> ahead_ = 0;
};

class WorkerDirectoryTest : public ::testing::Test {
 protected:
  void Start(const DirectoryOptions& options) {
    owner_.Do([&] {
      const auto count = [this] {
        ++changes_;
        changed_.notify_all();
      };
      directory_ = std::make_unique<WorkerDirectory>(owner_.loop, *calls_, logger_, options,
                                                     test::FakeWorkers::kTokenizer, count, count);
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
  void WaitMisfits(size_t prefills, size_t decodes) {
    WaitUntil([=](const WorkerDirectory& directory) {
      return directory.Unusable(ROLE_PREFILL).misfit == prefills &&
             directory.Unusable(ROLE_DECODE).misfit == decodes;
    });
  }
  // Until it has been looked at that many times more.
  void WaitTries(int more) {
    WaitUntil([&, until = network_.connects + more](const WorkerDirectory&) {
      return network_.connects >= until;
    });
  }
  void WaitReports(test::FakeWorker& worker, int more) {
    for (int i = 0; i < more; ++i) {
      const int before = changes_;
      worker::v1::WatchLoadResponse load = worker.load();
      load.set_blocks_free(load.blocks_free() - 1);
      worker.Report(load);
      WaitUntil([&](const WorkerDirectory&) { return changes_ > before; });
    }
  }
  absl::Status NoPair() {
    return owner_.Do([&] { return directory_->NoPair(); });
  }

  test::FakeWorkers workers_;
  AdvancedClock clock_;
  CountingNetwork network_{workers_.network()};
  test::KeepingLogger logger_;
  std::atomic<int> changes_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::unique_ptr<WorkerCalls> calls_ = MakeGrpcWorkerCalls(owner_.loop, network_);
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
  load.mutable_roofline()->set_link_bytes_per_second(4e8);
  decode.Report(load);
  WaitUntil([](const WorkerDirectory& directory) {
    const WorkerView view = ViewOf(directory.Usable().decode.at(0), TimePoint());
    return view.blocks_free == 7 && view.link_bytes_per_second == 4e8;
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
    Trial trial(std::shared_ptr<Circuit>(claim.worker(), &claim.worker()->circuit));
    EXPECT_TRUE(trial.Failed(clock_.Now()));
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
  Start({.prefill = {}, .decode = {"d"}});
  WaitTries(3);
  EXPECT_THAT(logger_.lines(), ElementsAre(::testing::AllOf(
                                   HasSubstr("I waiting for decode worker d: UNAVAILABLE: "),
                                   HasSubstr("; it may still be loading"))));
  owner_.Do([&] { EXPECT_EQ(directory_->Unusable(ROLE_DECODE).unreachable, 1u); });
  test::FakeDecode& decode = workers_.AddDecode("d");
  WaitPairs(0, 1);
  WaitReports(decode, 2);
  const std::string ready = "I decode worker d is ready";
  EXPECT_THAT(logger_.lines(), ElementsAre(_, ready));
  owner_.Do([&] { EXPECT_EQ(directory_->Unusable(ROLE_DECODE).total(), 0u); });
  worker::v1::WatchLoadResponse load = decode.load();
  load.set_draining(true);
  decode.Report(load);
  WaitPairs(0, 0);
  owner_.Do([&] { EXPECT_EQ(directory_->Unusable(ROLE_DECODE).draining, 1u); });
  WaitReports(decode, 2);
  decode.Kill();
  WaitTries(3);
  EXPECT_THAT(logger_.lines(),
              ElementsAre(_, ready, "I decode worker d drains: it gets nothing new",
                          HasSubstr("W decode worker d is unreachable: UNAVAILABLE: ")));
}

TEST_F(WorkerDirectoryTest, AWorkerThatWasNeverSeenIsAwaitedForAWhileOnly) {
  Start({.prefill = {}, .decode = {"d"}});
  WaitTries(3);
  EXPECT_THAT(logger_.lines(), ElementsAre(HasSubstr("I waiting for decode worker d: ")));
  owner_.Do([&] { EXPECT_EQ(directory_->Unusable(ROLE_DECODE).unreachable, 1u); });
  clock_.Advance(WorkerDirectory::kPatience);
  WaitTries(3);
  EXPECT_THAT(logger_.lines(),
              ElementsAre(_, HasSubstr("W decode worker d is unreachable: UNAVAILABLE: ")));
}

// Each way in which a worker is not one of this cluster.
struct Misfit {
  const char* name;
  std::function<void(test::FakeWorkers&)> make;
  const char* differs;
};

class MisfitTest : public WorkerDirectoryTest, public ::testing::WithParamInterface<Misfit> {};

TEST_P(MisfitTest, IsToldOnceAndUsedNever) {
  workers_.AddPrefill("p");
  workers_.AddDecode("d0");
  GetParam().make(workers_);
  test::FakeDecode& misfit = workers_.AddDecode("d1");
  Start({.prefill = {"p"}, .decode = {"d0", "d1"}});
  WaitMisfits(0, 1);
  WaitPairs(1, 1);
  WaitReports(misfit, 3);
  EXPECT_THAT(
      logger_.lines("d1 does not fit"),
      ElementsAre(::testing::AllOf(HasSubstr("E decode worker d1 does not fit and gets nothing: "),
                                   HasSubstr(GetParam().differs), HasSubstr("; "))));
  owner_.Do([&] { EXPECT_EQ(directory_->Usable().decode[0].worker->address, "d0"); });
}

INSTANTIATE_TEST_SUITE_P(
    Ways, MisfitTest,
    ::testing::Values(
        Misfit{"Model", [](auto& w) { w.fingerprint.set_model(9); }, "digest of the model is 9"},
        Misfit{"Tokenizer", [](auto& w) { w.fingerprint.set_tokenizer(9); },
               "digest of the tokenizer is 9, this router's 2"},
        Misfit{"Numerics", [](auto& w) { w.fingerprint.set_numerics("digits/r1"); },
               "numeric path is digits/r1 here and letters/r1 there, at prefill worker p"},
        Misfit{"Logits", [](auto& w) { w.fingerprint.set_logits_digest(9); },
               "digest of the logits"},
        Misfit{"Layout", [](auto& w) { w.fingerprint.mutable_kv_layout()->set_block_tokens(32); },
               "layout of a KV block"},
        Misfit{"Wire", [](auto& w) { w.wire_version = 9; },
               "it speaks wire versions 9 to 9, this router"}),
    [](const auto& info) { return info.param.name; });

TEST_F(WorkerDirectoryTest, SwappedListsAreToldForBoth) {
  workers_.AddPrefill("p");
  workers_.AddDecode("d");
  Start({.prefill = {"d"}, .decode = {"p"}});
  WaitMisfits(1, 1);
  EXPECT_THAT(
      logger_.lines(),
      UnorderedElementsAre(HasSubstr("E prefill worker d does not fit and gets nothing: its "
                                     "role is decode, it is listed under --prefill"),
                           HasSubstr("E decode worker p does not fit and gets nothing: its "
                                     "role is prefill, it is listed under --decode")));
  EXPECT_EQ(NoPair().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(NoPair().message(), HasSubstr("its role is decode"));
}

TEST_F(WorkerDirectoryTest, NamesTwoWorkersThatDoNotFit) {
  workers_.AddPrefill("p");
  workers_.fingerprint.set_numerics("digits/r1");
  test::FakeDecode& decode = workers_.AddDecode("d");
  Start({.prefill = {"p"}, .decode = {"d"}});
  WaitMisfits(1, 1);
  EXPECT_EQ(NoPair().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(NoPair().message(), HasSubstr("prefill worker p"));
  EXPECT_THAT(NoPair().message(), HasSubstr("decode worker d"));
  EXPECT_THAT(NoPair().message(), HasSubstr("digits/r1"));
  // One where it was seen before the other: nothing was wrong with it then.
  const size_t before = logger_.lines("decode worker d is ready").size();
  workers_.fingerprint.set_numerics("letters/r1");
  decode.Restart();
  WaitPairs(1, 1);
  WaitMisfits(0, 0);
  EXPECT_EQ(logger_.lines("decode worker d is ready").size(), before + 1);
}

TEST_F(WorkerDirectoryTest, AMisfitDoesNotHideThatTheOthersAreAway) {
  workers_.AddPrefill("p");
  Start({.prefill = {"p"}, .decode = {"p", "d"}});
  WaitPairs(1, 0);
  WaitMisfits(0, 1);
  EXPECT_EQ(NoPair(), absl::UnavailableError("no decode worker is usable: 1 unreachable, 0 not "
                                             "ready, 0 draining, 1 misfit"));
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

TEST_F(WorkerDirectoryTest, MixedNumericsMakeOneGroupOfTwoPaths) {
  workers_.fingerprint.set_allow_mixed_numerics(true);
  workers_.AddPrefill("p");
  workers_.fingerprint.set_numerics("digits/r1");
  workers_.AddDecode("d");
  Start({.prefill = {"p"}, .decode = {"d"}, .allow_mixed_numerics = true});
  WaitPairs(1, 1);
  const Workers pair = owner_.Do([&] { return directory_->Usable(); });
  EXPECT_EQ(pair.prefill[0].fit, pair.decode[0].fit);
}

TEST_F(WorkerDirectoryTest, AWorkerListedTwiceOrAsTheWrongKindCountsOnce) {
  workers_.AddPrefill("p");
  workers_.AddDecode("d");
  DirectoryOptions options = {.prefill = {"p", "d"}, .decode = {"name:1"}};
  options.lookup = [](const std::string&) { return std::vector<std::string>{"d"}; };
  Start(options);
  WaitPairs(1, 1);
}

TEST_F(WorkerDirectoryTest, ANameThatIsNeverResolvedIsToldOnceAndCounted) {
  workers_.AddPrefill("p");
  workers_.AddDecode("d");
  auto lookups = std::make_shared<std::atomic<int>>(0);
  auto known = std::make_shared<std::atomic<bool>>(false);
  DirectoryOptions options;
  options.prefill = {"p"};
  options.decode = {"decode:1"};
  options.resolve_interval = std::chrono::milliseconds(1);
  options.lookup = [=](const std::string&) -> absl::StatusOr<std::vector<std::string>> {
    ++*lookups;
    if (!*known) return absl::UnavailableError("cannot resolve decode:1: no such name");
    return std::vector<std::string>{"d"};
  };
  Start(options);
  WaitUntil([&](const WorkerDirectory&) { return *lookups > 3; });
  const std::string line =
      "W cannot resolve decode:1: no such name; 0 addresses of decode workers were found before; "
      "see that --decode and the name service are right";
  EXPECT_THAT(logger_.lines("decode:1"), ElementsAre(line));
  WaitPairs(1, 0);
  EXPECT_EQ(NoPair(), absl::UnavailableError("no decode worker is usable: 1 unreachable, 0 not "
                                             "ready, 0 draining, 0 misfit"));
  *known = true;
  WaitPairs(1, 1);
  EXPECT_THAT(logger_.lines("decode:1"),
              ElementsAre(line, "I decode:1 has 1 addresses of decode workers"));
  owner_.Do([&] { EXPECT_EQ(directory_->Unusable(ROLE_DECODE).total(), 0u); });
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
