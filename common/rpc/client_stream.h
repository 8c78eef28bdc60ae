// SPDX-License-Identifier: Apache-2.0
// Client calls on gRPC's callback API whose messages and ends arrive on an EventLoop. The owner
// keeps a handle; destroying it cancels the call and silences it. The call itself lives until gRPC
// is done with it and frees itself exactly once.
//
//   BidiStream<DecodeRequest, DecodeResponse> stream(
//       loop, {.deadline = deadline}, {.read = [](DecodeResponse& m) {...}, .done = ...},
//       [&](grpc::ClientContext* context, auto* reactor) { stub->async()->Decode(context, reactor);
//       });
//   stream.Write(open);
//   stream.Read();         // asks for one message: `read` is called once, or `done`
//
// Everything here happens on the loop's thread. Callbacks must not destroy the handle.
#ifndef SETU_COMMON_RPC_CLIENT_STREAM_H_
#define SETU_COMMON_RPC_CLIENT_STREAM_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/open_call.h"
#include "common/rpc/status.h"

namespace setu::rpc {

namespace client_internal {

inline void Apply(const CallOptions& options, const Clock& clock, grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(
                           options.deadline - clock.Now()));
  for (const auto& [key, value] : options.metadata) context.AddMetadata(key, value);
}

// What streams of both shapes share. gRPC's callbacks only post; all else is the loop's.
template <typename Reactor, typename Response>
class Call : public Reactor {
 public:
  Call(EventLoop& loop, const CallOptions& options, StreamEvents<Response> events)
      : loop_(loop), events_(std::move(events)) {
    Apply(options, loop.clock(), context_);
  }

  grpc::ClientContext* context() { return &context_; }

  // The hold keeps the call alive for reads and writes that the owner starts.
  void Begin(std::shared_ptr<Call> self) {
    self_ = std::move(self);
    loop_.Hold();
    this->AddHold();
    this->StartCall();
  }

  void Read() {
    if (open_) this->StartRead(&response_);
  }

  void Detach() {
    detached_ = true;
    context_.TryCancel();
    Close();
  }

  void OnReadDone(bool ok) final {
    loop_.PostCompletion([this, ok] { HandleRead(ok); });
  }

  void OnDone(const grpc::Status& status) final {
    loop_.PostCompletion([this, status] { HandleDone(ToAbsl(status)); });
  }

 protected:
  EventLoop& loop() { return loop_; }
  bool open() const { return open_; }

 private:
  void HandleRead(bool ok) {
    if (!ok) {
      Close();
    } else if (!detached_) {
      events_.read(response_);
    }
  }

  void HandleDone(const absl::Status& status) {
    const std::shared_ptr<Call> self = std::move(self_);
    loop_.Release();
    if (!detached_) events_.done(status);
  }

  void Close() {
    if (std::exchange(open_, false)) this->RemoveHold();
  }

  EventLoop& loop_;
  const StreamEvents<Response> events_;
  grpc::ClientContext context_;
  Response response_;
  std::shared_ptr<Call> self_;  // until gRPC is done
  bool open_ = true;
  bool detached_ = false;
};

template <typename Request, typename Response>
class BidiCall final : public Call<grpc::ClientBidiReactor<Request, Response>, Response> {
 public:
  using Call<grpc::ClientBidiReactor<Request, Response>, Response>::Call;

  bool Write(Request request, size_t max_pending) {
    if (!this->open() || broken_) return true;  // a read has found out why, or will
    if (pending_.size() >= max_pending) return false;
    pending_.push_back(std::move(request));
    if (pending_.size() == 1) this->StartWrite(&pending_.front());
    return true;
  }

  void OnWriteDone(bool ok) override {
    this->loop().PostCompletion([this, ok] { HandleWrite(ok); });
  }

 private:
  void HandleWrite(bool ok) {
    pending_.pop_front();
    broken_ = !ok;
    if (ok && this->open() && !pending_.empty()) this->StartWrite(&pending_.front());
  }

  std::deque<Request> pending_;  // the first is being written
  bool broken_ = false;
};

}  // namespace client_internal

// A call with a stream in each direction.
template <typename Request, typename Response>
class BidiStream final : public DuplexCall<Request> {
 public:
  using Reactor = grpc::ClientBidiReactor<Request, Response>;
  static constexpr size_t kMaxPendingWrites = 64;

  // `start` names the method: it attaches the reactor to a stub's call.
  BidiStream(EventLoop& loop, const CallOptions& options, StreamEvents<Response> events,
             absl::FunctionRef<void(grpc::ClientContext*, Reactor*)> start)
      : call_(std::make_shared<Inner>(loop, options, std::move(events))) {
    start(call_->context(), call_.get());
    call_->Begin(call_);
  }
  ~BidiStream() override { call_->Detach(); }

  void Read() override { call_->Read(); }
  // False where kMaxPendingWrites messages wait already.
  [[nodiscard]] bool Write(Request request) override {
    return call_->Write(std::move(request), kMaxPendingWrites);
  }

 private:
  using Inner = client_internal::BidiCall<Request, Response>;
  std::shared_ptr<Inner> call_;
};

// A call that is answered by a stream.
template <typename Response>
class ReadStream final : public ReadableCall {
 public:
  using Reactor = grpc::ClientReadReactor<Response>;

  ReadStream(EventLoop& loop, const CallOptions& options, StreamEvents<Response> events,
             absl::FunctionRef<void(grpc::ClientContext*, Reactor*)> start)
      : call_(std::make_shared<Inner>(loop, options, std::move(events))) {
    start(call_->context(), call_.get());
    call_->Begin(call_);
  }
  ~ReadStream() override { call_->Detach(); }

  void Read() override { call_->Read(); }

 private:
  using Inner = client_internal::Call<Reactor, Response>;
  std::shared_ptr<Inner> call_;
};

// A call with one answer.
template <typename Response>
class UnaryCall final : public OpenCall {
 public:
  using Reactor = grpc::ClientUnaryReactor;

  UnaryCall(EventLoop& loop, const CallOptions& options,
            std::function<void(absl::StatusOr<Response>)> done,
            absl::FunctionRef<void(grpc::ClientContext*, Response*, Reactor*)> start)
      : call_(std::make_shared<Inner>(loop, std::move(done))) {
    client_internal::Apply(options, loop.clock(), call_->context);
    call_->self = call_;
    start(&call_->context, &call_->response, call_.get());
    loop.Hold();
    call_->StartCall();
  }
  ~UnaryCall() override {
    call_->done = nullptr;
    call_->context.TryCancel();
  }

 private:
  struct Inner final : Reactor {
    Inner(EventLoop& loop, std::function<void(absl::StatusOr<Response>)> done)
        : loop(loop), done(std::move(done)) {}
    void OnDone(const grpc::Status& status) override {
      loop.PostCompletion([this, status] { Handle(ToAbsl(status)); });
    }
    void Handle(const absl::Status& status) {
      const std::shared_ptr<Inner> last = std::move(self);
      loop.Release();
      if (!done) return;
      done(status.ok() ? absl::StatusOr<Response>(std::move(response)) : status);
    }
    EventLoop& loop;
    std::function<void(absl::StatusOr<Response>)> done;
    grpc::ClientContext context;
    Response response;
    std::shared_ptr<Inner> self;  // until gRPC is done
  };
  std::shared_ptr<Inner> call_;
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_CLIENT_STREAM_H_
