// SPDX-License-Identifier: Apache-2.0
// A router that lets answers wait for each other: thousands of streams, with no thread for each.
//
//   WaitingRouter router(/*release_at=*/20);   // the first 20 are answered once all of them came
//   ... router.address() ... router.most_open() ...
#ifndef SETU_TESTS_SERVICES_CLI_LOAD_WAITING_ROUTER_H_
#define SETU_TESTS_SERVICES_CLI_LOAD_WAITING_ROUTER_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "setu/v1/inference.grpc.pb.h"

namespace setu::test {

class WaitingRouter final : public v1::InferenceService::CallbackService {
 public:
  static constexpr uint32_t kCachedTokens = 7;

  explicit WaitingRouter(size_t release_at) : release_at_(release_at) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~WaitingRouter() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  size_t most_open() {
    const std::lock_guard lock(mutex_);
    return most_open_;
  }
  size_t cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }
  // Different connections that requests came on.
  size_t connections() {
    const std::lock_guard lock(mutex_);
    return peers_.size();
  }
  std::vector<v1::GenerateRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  // Set before the first request. After so many tokens an answer says no more until it is
  // cancelled.
  uint32_t silent_after = std::numeric_limits<uint32_t>::max();
  std::function<void()> on_request;

 private:
  // max_tokens deltas of one token, then the end.
  class Answer final : public grpc::ServerWriteReactor<v1::GenerateResponse> {
   public:
    Answer(WaitingRouter& router, const v1::GenerateRequest& request)
        : router_(router),
          prompt_(static_cast<uint32_t>(request.token_ids().ids_size())),
          left_(request.sampling().max_tokens()) {}

    void Go() {
      const std::lock_guard lock(mutex_);
      if (std::exchange(going_, true)) return;
      Next();
    }
    void OnWriteDone(bool ok) override {
      const std::lock_guard lock(mutex_);
      if (!ok) return Finish(grpc::Status::CANCELLED);
      if (ended_) return Finish(grpc::Status::OK);
      Next();
    }
    void OnCancel() override {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      if (!std::exchange(going_, true) || silent_) Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override {
      if (!ended_) router_.Forget(this, left_ > 0);
      delete this;
    }

   private:
    void Next() {
      message_.Clear();
      if (sent_ == router_.silent_after) {
        silent_ = true;
        if (cancelled_) Finish(grpc::Status::CANCELLED);
        return;
      }
      if (left_ > 0) {
        --left_;
        ++sent_;
        message_.mutable_delta()->add_token_ids(5);
        return StartWrite(&message_);
      }
      v1::Usage& usage = *message_.mutable_finished()->mutable_usage();
      usage.set_prompt_tokens(prompt_);
      usage.set_cached_tokens(kCachedTokens);
      // Before the client can know of the end and ask anew.
      ended_ = true;
      router_.Forget(this, false);
      StartWrite(&message_);
    }

    WaitingRouter& router_;
    const uint32_t prompt_;
    std::mutex mutex_;
    uint32_t left_, sent_ = 0;
    bool going_ = false, silent_ = false, cancelled_ = false, ended_ = false;
    v1::GenerateResponse message_;
  };

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override {
    auto* answer = new Answer(*this, *request);
    std::vector<Answer*> released;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(*request);
      peers_.insert(context->peer());
      waiting_.push_back(answer);
      most_open_ = std::max(most_open_, ++open_);
      if (waiting_.size() >= release_at_) std::swap(released, waiting_);
    }
    if (on_request) on_request();
    for (Answer* one : released) one->Go();
    return answer;
  }

  void Forget(Answer* answer, bool cancelled) {
    const std::lock_guard lock(mutex_);
    std::erase(waiting_, answer);
    --open_;
    cancelled_ += cancelled;
  }

  const size_t release_at_;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<v1::GenerateRequest> requests_;
  std::set<std::string> peers_;
  std::vector<Answer*> waiting_;
  size_t open_ = 0, most_open_ = 0, cancelled_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SERVICES_CLI_LOAD_WAITING_ROUTER_H_
