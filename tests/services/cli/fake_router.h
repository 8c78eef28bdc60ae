// SPDX-License-Identifier: Apache-2.0
// A router that says what a test tells it to.
//
//   FakeRouter router;
//   router.deltas = {DeltaOf(0, "Hello", 4, -1)};   // before it is asked
//   ... router.address() ... router.requests() ...
#ifndef SETU_TESTS_SERVICES_CLI_FAKE_ROUTER_H_
#define SETU_TESTS_SERVICES_CLI_FAKE_ROUTER_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/bearer_token.h"
#include "setu/v1/inference.grpc.pb.h"
#include "tests/support/wait_until.h"

namespace setu::test {

// Sends `deltas` and ends with `end`, as often as it is asked. A chat of over `most_messages` is
// refused as too long; the answer to
// the `holds_from`th request, and to all later ones, has no end but its client's.
class FakeRouter final : public v1::InferenceService::Service {
 public:
  FakeRouter() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  std::vector<v1::GenerateRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // The tokens that came with the calls of Generate; empty: without one.
  std::vector<std::string> tokens() {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }
  // Whether a load has begun: it asks for ids first.
  bool tokenized() const { return tokenized_; }

  std::vector<v1::Delta> deltas;
  grpc::Status end;
  int most_messages = 1000;
  size_t holds_from = std::numeric_limits<size_t>::max();
  v1::FinishReason finish_reason = v1::FINISH_REASON_STOP;

 private:
  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        grpc::ServerWriter<v1::GenerateResponse>* writer) override {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(*request);
      tokens_.push_back(rpc::BearerOf(context->client_metadata()).value_or(""));
    }
    if (request->chat().messages_size() > most_messages) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "sampling.max_tokens is 9; at most 3 fit"};
    }
    for (const v1::Delta& delta : deltas) {
      v1::GenerateResponse response;
      *response.mutable_delta() = delta;
      writer->Write(response);
    }
    if (requests().size() >= holds_from)
      WaitUntil(std::chrono::seconds(30), [&] { return context->IsCancelled(); });
    if (!end.ok()) return end;
    for (uint32_t choice = 0; choice < std::max(request->sampling().n(), 1u); ++choice) {
      v1::GenerateResponse response;
      response.mutable_finished()->set_index(choice);
      response.mutable_finished()->set_finish_reason(finish_reason);
      response.mutable_finished()->mutable_usage()->set_completion_tokens(1);
      writer->Write(response);
    }
    return end;
  }
  grpc::Status Tokenize(grpc::ServerContext*, const v1::TokenizeRequest*,
                        v1::TokenizeResponse* response) override {
    tokenized_ = true;
    for (uint32_t id = 0; id < 40; ++id) response->add_token_ids(id);
    return grpc::Status::OK;
  }
  grpc::Status Detokenize(grpc::ServerContext*, const v1::DetokenizeRequest* request,
                          v1::DetokenizeResponse* response) override {
    response->set_text(absl::StrCat("<", request->token_ids(0), ">"));
    return grpc::Status::OK;
  }

  grpc::Status ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                          v1::ListModelsResponse* response) override {
    response->add_models()->set_ready(true);
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::atomic<bool> tokenized_ = false;
  std::mutex mutex_;
  std::vector<v1::GenerateRequest> requests_;
  std::vector<std::string> tokens_;
  std::unique_ptr<grpc::Server> server_;
};

inline v1::Delta DeltaOf(uint32_t choice, const std::string& text, uint32_t id, float logprob) {
  v1::Delta delta;
  delta.set_index(choice);
  delta.set_text(text);
  delta.add_token_ids(id);
  v1::TokenLogprobs& token = *delta.add_logprobs();
  token.set_logprob(logprob);
  v1::TopLogprob& top = *token.add_top();
  top.set_token_id(id + 1);
  top.set_logprob(-0.5f);
  return delta;
}

}  // namespace setu::test

#endif  // SETU_TESTS_SERVICES_CLI_FAKE_ROUTER_H_
