// SPDX-License-Identifier: Apache-2.0
// What may go wrong while a cache is written costs that cache alone.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>

#include "common/model/packed_cache.h"
#include "tests/common/model/packed_cache_fixture.h"

namespace setu::model {
namespace {

namespace fs = std::filesystem;

using kernels::WeightType;
using ::testing::HasSubstr;

TEST_F(PackedCacheTest, AnotherKindOfFileInItsPlaceIsNoCache) {
  fs::create_directory(cache_);
  const CachedWeights loaded = Load();
  EXPECT_THAT(loaded.cache.read.message(), HasSubstr("not a regular file"));
  EXPECT_FALSE(loaded.cache.written.ok());
  ExpectSame(loaded.weights, LoadPlainly());
  EXPECT_THAT(Files(), ::testing::ElementsAre("tiny.gguf.lanes-int8.packed"));  // no temporary
  fs::remove(cache_);
  ASSERT_EQ(mkfifo(cache_.c_str(), 0600), 0);  // nobody will ever write to it
  ExpectRepacked("not a regular file", absl::StatusCode::kFailedPrecondition);
}

TEST_F(PackedCacheTest, AReadOnlyFolderCostsTheCacheAlone) {
  constexpr uid_t kNobody = 65534;
  fs::permissions(dir_.path(), fs::perms(0555));
  const int before = setfsuid(geteuid() == 0 ? kNobody : geteuid());  // root may write anywhere
  const CachedWeights loaded = Load();
  setfsuid(static_cast<uid_t>(before));
  fs::permissions(dir_.path(), fs::perms(0700));
  EXPECT_EQ(loaded.cache.read.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(loaded.cache.written.code(), absl::StatusCode::kPermissionDenied);
  ExpectSame(loaded.weights, LoadPlainly());
  EXPECT_THAT(Files(), ::testing::IsEmpty());
}

// Files may not grow beyond `bytes` while it lives, as if the disk were full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit full = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST_F(PackedCacheTest, AFullDiskCostsTheCacheAlone) {
  Load();
  const std::string old = ReadWhole(cache_);
  test::WriteTinyModel(dir_, {.seed = 3, .weights = WeightType::kF16});
  {
    const FullDisk full(50'000);
    const CachedWeights loaded = Load();
    EXPECT_THAT(loaded.cache.written.message(), HasSubstr("File too large"));
    ExpectSame(loaded.weights, LoadPlainly());
  }
  EXPECT_THAT(Files(), ::testing::ElementsAre("tiny.gguf.lanes-int8.packed"));
  EXPECT_TRUE(ReadWhole(cache_) == old);
  ExpectRepacked("it says 'model modified at ", absl::StatusCode::kFailedPrecondition);
}

TEST_F(PackedCacheTest, WorkersThatStartAtOnceDoNotDisturbEachOther) {
  const Weights expected = LoadPlainly();
  for (int round = 0; round < 20; ++round) {
    fs::remove(cache_);
    std::array<std::unique_ptr<CachedWeights>, 3> loaded;
    {
      std::vector<std::jthread> workers;
      for (auto& one : loaded) {
        workers.emplace_back([&] { one = std::make_unique<CachedWeights>(Load()); });
      }
    }
    for (const auto& one : loaded) {
      ExpectSame(one->weights, expected);
      EXPECT_TRUE(one->cache.written.ok() || absl::IsAborted(one->cache.written))
          << one->cache.written;
    }
    EXPECT_TRUE(Load().cache.read.ok());
    EXPECT_EQ(Files().size(), 1u);
  }
}

TEST_F(PackedCacheTest, WhatAnotherWritesIsLeftToIt) {
  const std::string temporary = dir_.Write("tiny.gguf.lanes-int8.packed.tmp", "half of it");
  const int other = open(temporary.c_str(), O_RDWR);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  const CachedWeights loaded = Load();
  EXPECT_TRUE(absl::IsAborted(loaded.cache.written)) << loaded.cache.written;
  ExpectSame(loaded.weights, LoadPlainly());
  EXPECT_EQ(ReadWhole(temporary), "half of it");
  EXPECT_FALSE(fs::exists(cache_));
  close(other);  // as when it is killed
  ExpectRepacked("", absl::StatusCode::kNotFound);
}

TEST_F(PackedCacheTest, WhatAKilledWriterLeftIsWrittenOver) {
  dir_.Write("tiny.gguf.lanes-int8.packed.tmp", std::string(10'000'000, 'x'));
  ExpectRepacked("", absl::StatusCode::kNotFound);
}

TEST_F(PackedCacheTest, ALinkInItsPlaceIsNotFollowed) {
  const test::TempDir elsewhere;
  const std::string victim = elsewhere.Write("victim", "precious");
  const std::string none = elsewhere.File("none");
  fs::create_symlink(none, cache_ + ".tmp");
  EXPECT_FALSE(Load().cache.written.ok());
  EXPECT_FALSE(fs::exists(none));
  fs::remove(cache_ + ".tmp");
  fs::create_symlink(victim, cache_);
  ExpectRepacked("it says 'precious'", absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadWhole(victim), "precious");
}

}  // namespace
}  // namespace setu::model
