// SPDX-License-Identifier: Apache-2.0
// The wire time of a prompt's KV between two processes of one host, by gRPC and through shared
// memory: from the last layer's end to the receiver's commit, all of the KV still to be sent. The
// two take turns, push by push.
//
//   build/release/test/kv_transfer_bench              # KV of a model of 135 M parameters
//   build/release/test/kv_transfer_bench 16 8 128     # layers, heads of KV, their dimensions
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/inbox.h"
#include "common/kv_transfer/kv_transfer_service.h"
#include "common/kv_transfer/sender.h"
#include "common/rpc/channel_factory.h"
#include "common/rpc/server.h"

namespace setu::kv_transfer {
namespace {

constexpr int kRounds = 31;
constexpr std::array<int32_t, 2> kPrompts = {512, 4096};  // tokens
constexpr int32_t kBlocks = 4096 / 16;

struct Push {
  uint32_t attempt = 0;
  int32_t tokens = 0;
  bool shm = false;
};

// What both processes agree on.
std::vector<Push> Pushes() {
  std::vector<Push> pushes;
  for (const int32_t tokens : kPrompts) {
    for (int round = 0; round < kRounds; ++round) {
      for (const bool shm : {false, true}) {
        pushes.push_back({static_cast<uint32_t>(pushes.size() + 1), tokens, shm});
      }
    }
  }
  return pushes;
}

std::vector<kv::BlockId> Table(const kv::KvLayout& layout, int32_t tokens) {
  std::vector<kv::BlockId> blocks(kv::BlocksFor(tokens, layout.block_tokens));
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<kv::BlockId>(i);
  return blocks;
}

// A decode worker's half, in a process of its own; ends with the pipe.
void Receive(const kv::KvLayout& layout, int port_out, int end_in) {
  const auto storage = *kv::KvStorage::Create(layout, kBlocks);
  const SteadyClock clock;
  Inbox<TransferEvent> inbox(1024);
  engine::RunnerFingerprint fingerprint{.layout = layout};
  Receiver receiver(wire::ToProto(fingerprint), 100, *storage, clock,
                    [&](TransferEvent event) { inbox.PushUnbounded(std::move(event)); });
  std::vector<std::shared_ptr<Transfer>> transfers;
  for (const Push& push : Pushes()) {
    transfers.push_back(receiver.Expect({.uuid = "bench",
                                         .attempt = push.attempt,
                                         .owner = push.attempt,
                                         .token_count = push.tokens}));
  }
  KvTransferService service(receiver);
  NullLogger logger;
  auto server = *rpc::Server::Start({.max_receive_bytes = 64 << 20}, {&service},
                                    *rpc::Listener::Bind("--listen", "127.0.0.1:0"), logger);
  const int port = server->port();
  SETU_CHECK(write(port_out, &port, sizeof port) == sizeof port, "the other process reads");
  for (size_t over = 0; over < transfers.size();) {
    inbox.WaitUntil(clock.Now() + std::chrono::seconds(1));
    for (TransferEvent& event : inbox.Drain()) {
      if (const auto* started = std::get_if<TransferStarted>(&event)) {
        const Push push = Pushes()[started->attempt - 1];
        transfers[started->attempt - 1]->Bind(Table(layout, push.tokens));
      } else {
        const auto& committed = std::get<TransferCommitted>(event);
        transfers[committed.attempt - 1]->Finish(absl::OkStatus());
        ++over;
      }
    }
  }
  char byte;
  (void)!read(end_in, &byte, 1);
}

double Milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double Median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + times.size() / 2);
  return times[times.size() / 2];
}

void Send(const kv::KvLayout& layout, int port) {
  const auto storage = *kv::KvStorage::Create(layout, kBlocks);
  for (int32_t block = 0; block < kBlocks; ++block) {
    for (int32_t layer = 0; layer < layout.layers; ++layer) {
      std::ranges::fill(storage->Piece(block, layer), static_cast<std::byte>(block + layer));
    }
  }
  const auto staging = *SharedStaging::Create(32 << 20, SlotBytes(layout));
  const auto channels = rpc::MakeTcpChannelFactory();
  const auto channel = channels->Connect(absl::StrCat("127.0.0.1:", port));
  const SteadyClock clock;
  std::vector<double> times[2];
  for (const auto& [attempt, tokens, shm] : Pushes()) {
    std::promise<PushResult> done;
    PushPlan plan{.uuid = "bench",
                  .attempt = attempt,
                  .fingerprint = {.layout = layout},
                  .token_count = tokens,
                  .blocks = Table(layout, tokens)};
    const int32_t blocks = static_cast<int32_t>(plan.blocks.size());
    const TimePoint start = clock.Now();
    const auto push =
        GrpcPush::Start(channel, *storage, shm ? staging.get() : nullptr, std::move(plan), clock,
                        [&](const PushResult& result) { done.set_value(result); });
    for (int32_t layer = 0; layer < layout.layers; ++layer) push->Final(layer, blocks);
    push->Commit({});
    const PushResult result = done.get_future().get();
    times[shm].push_back(Milliseconds(clock.Now() - start));
    SETU_CHECK(result.status.ok(), result.status.ToString().c_str());
    SETU_CHECK(result.shm_bytes == (shm ? result.kv_bytes : 0), result.shm_refused.c_str());
    if (times[1].size() < kRounds) continue;
    const double grpc = Median(times[0]), shared = Median(times[1]);
    std::printf(
        "%5d tokens, %6.1f MB: grpc %7.2f ms (%4.2f GB/s), shm %7.2f ms (%4.2f GB/s): "
        "%.2f times as fast\n",
        tokens, result.kv_bytes / 1e6, grpc, result.kv_bytes / grpc / 1e6, shared,
        result.kv_bytes / shared / 1e6, grpc / shared);
    times[0].clear();
    times[1].clear();
  }
}

}  // namespace
}  // namespace setu::kv_transfer

int main(int argc, char** argv) {
  const auto number = [&](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  const setu::kv::KvLayout layout{.layers = number(1, 30),
                                  .kv_heads = number(2, 3),
                                  .head_dim = number(3, 64),
                                  .type = setu::kernels::KvType::kBF16};
  int port_pipe[2], end_pipe[2];
  SETU_CHECK(pipe(port_pipe) == 0 && pipe(end_pipe) == 0, "there are pipes");
  if (fork() == 0) {
    close(end_pipe[1]);
    setu::kv_transfer::Receive(layout, port_pipe[1], end_pipe[0]);
    return 0;
  }
  int port = 0;
  SETU_CHECK(read(port_pipe[0], &port, sizeof port) == sizeof port, "the receiver starts");
  setu::kv_transfer::Send(layout, port);
  return 0;
}
