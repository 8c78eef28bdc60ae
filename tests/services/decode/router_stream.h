// SPDX-License-Identifier: Apache-2.0
// What a decode worker's callers do over gRPC, in a test that waits for each answer.
#ifndef SETU_TESTS_SERVICES_DECODE_ROUTER_STREAM_H_
#define SETU_TESTS_SERVICES_DECODE_ROUTER_STREAM_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/rpc/status.h"
#include "common/wire/convert.h"
#include "setu/worker/v1/decode.grpc.pb.h"
#include "setu/worker/v1/kv_transfer.grpc.pb.h"
#include "tests/services/decode/fake_prefill.h"

namespace setu::decode {

// One Decode stream of a router.
class RouterStream {
 public:
  explicit RouterStream(worker::v1::DecodeService::Stub& stub) : stream_(stub.Decode(&context_)) {}

  void Open(const wire::Sequence& sequence, uint32_t attempt = 1) {
    worker::v1::DecodeRequest request;
    *request.mutable_open()->mutable_sequence() = wire::ToProto(sequence);
    request.mutable_open()->set_attempt(attempt);
    stream_->Write(request);
  }
  void Write(const worker::v1::DecodeRequest& request) { stream_->Write(request); }

  // The next message; none where the stream has ended.
  std::optional<worker::v1::DecodeResponse> Read() {
    worker::v1::DecodeResponse response;
    if (!stream_->Read(&response)) return std::nullopt;
    return response;
  }
  // Reads to the end; the ids by choice.
  std::map<uint32_t, std::vector<engine::TokenId>> ReadTokens() {
    std::map<uint32_t, std::vector<engine::TokenId>> ids;
    while (const std::optional<worker::v1::DecodeResponse> response = Read()) {
      if (!response->has_tokens()) continue;
      std::vector<engine::TokenId>& of = ids[response->tokens().choice()];
      EXPECT_EQ(response->tokens().first_index(), of.size());
      for (const auto& token : response->tokens().tokens()) of.push_back(token.id());
    }
    return ids;
  }
  void HalfClose() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }
  absl::Status Finish() { return rpc::ToAbsl(stream_->Finish()); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<worker::v1::DecodeRequest, worker::v1::DecodeResponse>>
      stream_;
};

// What a prefill worker does; the worker's answer.
inline absl::Status Push(worker::v1::KvTransferService::Stub& transfer, const PushedKv& kv) {
  grpc::ClientContext context;
  const auto writer = transfer.PushKv(&context);
  worker::v1::PushKvRequest request;
  *request.mutable_manifest() = kv.manifest;
  writer->Write(request);
  for (const worker::v1::Frame& frame : kv.frames) {
    *request.mutable_frame() = frame;
    writer->Write(request);
  }
  *request.mutable_commit() = kv.commit;
  writer->Write(request);
  writer->WritesDone();
  worker::v1::PushKvResponse answer;
  while (writer->Read(&answer)) {
  }
  return rpc::ToAbsl(writer->Finish());
}

}  // namespace setu::decode

#endif  // SETU_TESTS_SERVICES_DECODE_ROUTER_STREAM_H_
