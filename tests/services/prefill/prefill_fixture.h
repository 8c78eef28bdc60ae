// SPDX-License-Identifier: Apache-2.0
// What tests of the prefill loop and worker share: a tiny model, a peer that takes KV, and waits
// that end with a failure instead of never.
#ifndef SETU_TESTS_SERVICES_PREFILL_PREFILL_FIXTURE_H_
#define SETU_TESTS_SERVICES_PREFILL_PREFILL_FIXTURE_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/engine/model_runner.h"
#include "common/rpc/server.h"
#include "services/prefill/prompt.h"
#include "services/prefill/snapshot.h"
#include "tests/support/in_process_network.h"
#include "tests/support/kv_peer.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace setu::prefill {

// A value that one thread changes and a test waits on, for at most 20 s.
template <typename T>
class Watched {
 public:
  void Change(const std::function<void(T&)>& change) {
    std::lock_guard lock(mutex_);
    change(value_);
    changed_.notify_all();
  }
  T WaitFor(const std::function<bool(const T&)>& condition) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return condition(value_); }));
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  T value_{};
};

class RecordingReply final : public Reply {
 public:
  struct Record {
    std::vector<wire::FirstToken> first_tokens;
    int32_t known_tokens = 0;
    std::optional<uint64_t> pushed;
    bool push_failed = false;
    std::optional<absl::Status> end;
    bool in_order = true;  // first tokens, then pushed, then one end
  };

  void FirstTokens(const std::vector<wire::FirstToken>& tokens, Duration, Duration,
                   int32_t known_tokens) override {
    record_.Change([&](Record& r) {
      r.in_order = r.in_order && r.first_tokens.empty() && !r.pushed && !r.end;
      r.first_tokens = tokens;
      r.known_tokens = known_tokens;
    });
  }
  void Pushed(uint64_t kv_bytes, Duration) override {
    record_.Change([&](Record& r) {
      r.in_order = r.in_order && !r.first_tokens.empty() && !r.pushed && !r.end;
      r.pushed = kv_bytes;
    });
  }
  void PushFailed() override {
    record_.Change([&](Record& r) {
      r.in_order = r.in_order && !r.pushed && !r.push_failed && !r.end;
      r.push_failed = true;
    });
  }
  void End(const absl::Status& status) override {
    record_.Change([&](Record& r) {
      r.in_order = r.in_order && !r.end;
      r.end = status;
    });
  }

  Record WaitForEnd() {
    return record_.WaitFor([](const Record& r) { return r.end.has_value(); });
  }
  Record WaitForFirstTokens() {
    return record_.WaitFor([](const Record& r) { return !r.first_tokens.empty(); });
  }

 private:
  Watched<Record> record_;
};

inline std::vector<engine::TokenId> RandomIds(uint32_t seed, int32_t count) {
  std::mt19937 random(seed);
  std::vector<engine::TokenId> ids(count);
  for (engine::TokenId& id : ids) id = test::kTinyFirstByte + random() % 256;
  return ids;
}

inline wire::Sequence GreedySequence(const std::string& uuid, std::vector<engine::TokenId> ids) {
  wire::Sequence sequence;
  sequence.uuid = uuid;
  sequence.prompt_length = static_cast<int32_t>(ids.size());
  sequence.ids = std::move(ids);
  sequence.sampling.temperature = 0.0f;
  sequence.choices = {0};
  return sequence;
}

class PrefillFixture : public ::testing::Test {
 protected:
  static constexpr int32_t kBlockBytes = 2 * 2 * 2 * 16 * 16 * 4;  // of the tiny model in f32

  void SetUp() override {
    model_ = test::WriteTinyModel(dir_);
    auto server = rpc::Server::Start({.max_receive_bytes = 64 << 20}, {&peer_});
    ASSERT_TRUE(server.ok()) << server.status();
    peer_server_ = *std::move(server);
    channels_.Put("decode", peer_server_.get());
  }

  std::unique_ptr<engine::ModelRunner> Load(int32_t blocks = 64, int32_t max_rows = 512) {
    auto runner =
        engine::ModelRunner::Load({.model_path = model_,
                                   .cpu = {.path = kernels::NumericPath::kF32, .threads = 1},
                                   .kv_memory_bytes = int64_t{blocks} * kBlockBytes,
                                   .max_rows = max_rows},
                                  nullptr);
    EXPECT_TRUE(runner.ok()) << runner.status();
    EXPECT_EQ((*runner)->pool().total(), blocks);
    return *std::move(runner);
  }

  test::TempDir dir_;
  std::string model_;
  test::KvPeer peer_;
  std::unique_ptr<rpc::Server> peer_server_;
  test::InProcessNetwork channels_;
  SteadyClock clock_;
};

}  // namespace setu::prefill

#endif  // SETU_TESTS_SERVICES_PREFILL_PREFILL_FIXTURE_H_
