// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_workers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace setu::test {

FakeWorker::FakeWorker(FakeWorkers& workers, std::string address, worker::v1::Role role)
    : workers_(workers), address_(std::move(address)), role_(role) {
  load_.set_ready(true);
  load_.set_blocks_total(1024);
  load_.set_blocks_free(1024);
  load_.set_running_max(64);
}

FakeWorker::~FakeWorker() = default;

void FakeWorker::StartServer(grpc::Service* service) {
  service_ = service;
  worker::v1::DescribeResponse description;
  description.set_role(role_);
  description.set_incarnation(absl::StrCat(address_, "#", ++incarnation_));
  *description.mutable_fingerprint() = workers_.fingerprint;
  description.set_model_name("letters");
  description.set_context_length(512);
  description.set_pool_tokens(1024 * 16);
  if (role_ == worker::v1::ROLE_DECODE) {
    description.set_grant_output_tokens(256);
    description.set_resume_watermark(workers_.resume_watermark);
  }
  description.set_wire_version_min(workers_.wire_version);
  description.set_wire_version_max(workers_.wire_version);
  worker_service_ = std::make_unique<worker::WorkerService>(description, [] {});
  worker_service_->Publish(load_);
  auto server = rpc::Server::Start({}, {service, worker_service_.get()});
  SETU_CHECK(server.ok(), "an in-process server starts");
  server_ = *std::move(server);
  workers_.network().Put(address_, server_.get());
}

Headers FakeWorker::HeadersOf(const grpc::CallbackServerContext& context) {
  Headers headers;
  for (const auto& [key, value] : context.client_metadata()) {
    headers.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
  return headers;
}

std::vector<std::string> FakeWorker::Values(const std::vector<Headers>& calls,
                                            const std::string& key) {
  std::vector<std::string> values;
  for (const Headers& headers : calls) {
    const auto found = headers.find(key);
    values.push_back(found == headers.end() ? "" : found->second);
  }
  return values;
}

void FakeWorker::Report(worker::v1::WatchLoadResponse load) {
  load_ = std::move(load);
  worker_service_->Publish(load_);
}

void FakeWorker::Kill() {
  if (server_ == nullptr) return;
  workers_.network().TakeOff(address_);
  worker_service_->EndWatches();
  server_->Shutdown(Duration::zero());  // cancels every call
  server_ = nullptr;
  worker_service_ = nullptr;
}

void FakeWorker::Restart() {
  Kill();
  StartServer(service_);
}

FakeWorkers::FakeWorkers() {
  fingerprint.set_model(1);
  fingerprint.set_tokenizer(kTokenizer);
  fingerprint.set_numerics("letters/r1");
  fingerprint.mutable_kv_layout()->set_block_tokens(16);
}

FakeWorkers::~FakeWorkers() = default;

FakeDecode& FakeWorkers::AddDecode(const std::string& address) {
  decodes_.push_back(std::make_unique<FakeDecode>(*this, address));
  return *decodes_.back();
}

FakePrefill& FakeWorkers::AddPrefill(const std::string& address) {
  prefills_.push_back(std::make_unique<FakePrefill>(*this, address));
  return *prefills_.back();
}

FakeDecode* FakeWorkers::DecodeAt(const std::string& address) {
  for (const auto& decode : decodes_) {
    if (decode->address() == address) return decode.get();
  }
  return nullptr;
}

uint32_t FakeWorkers::TokenAt(int32_t generated, uint32_t choice) const {
  if (end_ && generated >= end_->first) return end_->second;
  return 'a' + (static_cast<uint32_t>(generated) + 3 * choice) % 26;
}

worker::v1::EndReason FakeWorkers::EndOf(const worker::v1::SamplingParams& sampling,
                                         int32_t generated, uint32_t choice) const {
  const uint32_t id = TokenAt(generated, choice);
  for (uint32_t end : sampling.end_ids()) {
    if (id == end) return worker::v1::END_REASON_END_ID;
  }
  const bool last = generated + 1 >= static_cast<int32_t>(sampling.max_tokens());
  return last ? worker::v1::END_REASON_MAX_TOKENS : worker::v1::END_REASON_UNSPECIFIED;
}

std::string FakeWorkers::Text(int32_t tokens, uint32_t choice) const {
  std::string text;
  for (int32_t i = 0; i < tokens; ++i) text += static_cast<char>(TokenAt(i, choice));
  return text;
}

}  // namespace setu::test
