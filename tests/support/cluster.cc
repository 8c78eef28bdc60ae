// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cluster.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/kv_transfer/sender.h"
#include "common/model/gguf.h"
#include "common/tokenizer/tokenizer.h"
#include "tests/support/client.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

std::unique_ptr<rpc::Server> Serve(std::vector<grpc::Service*> services) {
  // Frames are larger than a client's message may be.
  auto server = rpc::Server::Start({.max_receive_bytes = 64 << 20}, std::move(services));
  SETU_CHECK(server.ok(), "an in-process server starts");
  return *std::move(server);
}

template <typename Member>
void StopMember(Member& member) {
  if (member.worker) member.worker->Stop();
  if (member.server) member.server->Shutdown(Duration(0));
  member.server.reset();
  member.worker.reset();
}

}  // namespace

Cluster::Cluster(const Options& options) : options_(options) {
  router::RouterOptions router = options.router;
  router.workers.lookup = [](const std::string& name) { return std::vector<std::string>{name}; };
  for (int i = 0; i < options.prefill_workers; ++i) {
    router.workers.prefill.push_back(absl::StrCat("prefill-", i));
    StartPrefill(router.workers.prefill.back());
  }
  for (int i = 0; i < options.decode_workers; ++i) {
    router.workers.decode.push_back(absl::StrCat("decode-", i));
    StartDecode(router.workers.decode.back());
  }
  auto file = model::GgufFile::Open(options.model);
  SETU_CHECK(file.ok(), "the test's model is a GGUF file");
  auto tokenizer = tokenizer::Tokenizer::FromGguf(**file);
  auto info = router::ReadModelInfo(**file);
  SETU_CHECK(tokenizer.ok() && info.ok(), "the test's model has a tokenizer and a config");
  router_ = std::make_unique<router::Router>(router, *std::move(tokenizer), *std::move(info),
                                             network_, clock_, logger_, observer_);
  router_server_ = Serve(router_->services());
  stub_ = v1::InferenceService::NewStub(router_server_->InProcessChannel());
}

Cluster::~Cluster() {
  router_server_->Shutdown(Duration(0));
  router_->Stop();
  for (auto& [name, member] : prefill_) StopMember(member);
  for (auto& [name, member] : decode_) StopMember(member);
}

prefill::Worker& Cluster::prefill(int i) {
  return *prefill_.at(absl::StrCat("prefill-", i)).worker;
}

decode::Worker& Cluster::decode(int i) { return *decode_.at(absl::StrCat("decode-", i)).worker; }

std::unique_ptr<engine::ModelRunner> Cluster::Load(engine::RunnerOptions options) const {
  options.model_path = options_.model;
  auto runner = engine::ModelRunner::Load(options, nullptr);
  SETU_CHECK(runner.ok(), "the test's model loads");
  return *std::move(runner);
}

void Cluster::StartPrefill(const std::string& name) {
  auto& member = prefill_[name];
  auto runner = Load(options_.prefill_runner);
  auto staging = kv_transfer::SharedStaging::Create(
      options_.kv_shm_bytes, kv_transfer::SlotBytes(runner->storage().layout()));
  SETU_CHECK(staging.ok(), "a test asks for memory that is there");
  member.worker = std::make_unique<prefill::Worker>(options_.prefill, std::move(runner),
                                                    *std::move(staging), network_, clock_, logger_);
  member.server = Serve(member.worker->services());
  network_.Put(name, member.server.get());
}

void Cluster::StartDecode(const std::string& name) {
  auto& member = decode_[name];
  engine::RunnerOptions runner = options_.decode_runner;
  const auto other = options_.kv_memory_bytes.find(name);
  if (other != options_.kv_memory_bytes.end()) runner.kv_memory_bytes = other->second;
  member.worker = std::make_unique<decode::Worker>(options_.decode, Load(runner), clock_, logger_);
  member.server = Serve(member.worker->services());
  network_.Put(name, member.server.get());
}

void Cluster::Start(const std::string& name) {
  name.starts_with("prefill") ? StartPrefill(name) : StartDecode(name);
}

void Cluster::Kill(const std::string& name) {
  network_.TakeOff(name);
  if (name.starts_with("prefill")) {
    StopMember(prefill_.at(name));
  } else {
    StopMember(decode_.at(name));
  }
}

bool Cluster::WaitReady(std::chrono::seconds limit) {
  return WaitUntil(limit, [&] { return router_->snapshot().ready; });
}

std::string Cluster::Quiesce(std::chrono::seconds limit) {
  return WaitUntil(limit, [&] { return Held().empty(); }) ? "" : Held();
}

std::string Cluster::Held() const {
  std::string out;
  const auto note = [&](const std::string& name, const char* what, int64_t count) {
    if (count != 0) absl::StrAppend(&out, name, ": ", count, " ", what, "; ");
  };
  for (const auto& [name, member] : prefill_) {
    if (!member.worker) continue;
    const prefill::Snapshot s = member.worker->snapshot();
    note(name, "running", s.running);
    note(name, "queued", s.queued);
    note(name, "blocks held", s.blocks_total - s.blocks_free);
  }
  for (const auto& [name, member] : decode_) {
    if (!member.worker) continue;
    const decode::Snapshot s = member.worker->snapshot();
    note(name, "running", s.running);
    note(name, "transfers", s.transfers);
    note(name, "blocks held", s.blocks_held);
    note(name, "blocks promised", s.blocks_promised);
  }
  const router::RouterSnapshot r = router_->snapshot();
  note("router", "running", static_cast<int64_t>(r.running));
  note("router", "queued", static_cast<int64_t>(r.queue_length));
  return out;
}

std::vector<uint32_t> ReferenceIds(Cluster::Options options, const v1::GenerateRequest& request) {
  options.prefill_workers = options.decode_workers = 1;
  Cluster alone(options);
  EXPECT_TRUE(alone.WaitReady());
  Answer answer = Generate(alone.stub(), request);
  EXPECT_TRUE(answer.ok()) << answer.Explain();
  return answer.ids();
}

}  // namespace setu::test
