// SPDX-License-Identifier: Apache-2.0
#include "services/router/generate_service.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/rpc/bearer_token.h"
#include "common/rpc/status.h"
#include "services/router/router.h"

namespace setu::router {
namespace {

// How long the last messages may wait for a client that does not read.
constexpr Duration kLastMoment = std::chrono::seconds(30);

std::string Header(const grpc::CallbackServerContext& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return "";
  return PlainOrEmpty(std::string(found->second.data(), found->second.size()));
}

// The client's deadline by our clock; gRPC gives one of centuries where the client set none.
TimePoint DeadlineOf(const grpc::CallbackServerContext& context, TimePoint now, Duration ours) {
  constexpr std::chrono::hours kAsGoodAsNone(24 * 365);
  const auto asked = context.deadline() - std::chrono::system_clock::now();
  return now + (asked < kAsGoodAsNone ? Duration(asked) : ours);
}

// Of a stream that was cancelled, reset or closed before its message had come: no request, so none
// that is counted or traced.
absl::Status NothingAsked() {
  return absl::CancelledError("the stream ended before its GenerateRequest came; send one");
}

}  // namespace

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

GenerateCall* GenerateCall::Start(Router& router, grpc::CallbackServerContext& context,
                                  const grpc::ByteBuffer& request) {
  std::shared_ptr<GenerateCall> self(new GenerateCall(router.loop(), context));
  self->self_ = self;
  Origin origin{.at = router.loop().clock().Now(),
                .request_id = Header(context, "x-request-id"),
                .traceparent = Header(context, "traceparent")};
  absl::StatusOr<Caller> caller = router.Identify(rpc::BearerOf(context.client_metadata()));
  if (!caller.ok()) {
    router.RefuseStranger(std::move(origin), self, caller.status());
    return self.get();
  }
  if (!request.Valid()) {
    router.loop().PostCompletion([self] { self->End({.status = NothingAsked()}); });
    return self.get();
  }
  Router::Call call{.origin = std::move(origin), .caller = *std::move(caller)};
  call.deadline = DeadlineOf(context, call.origin.at, router.options().default_deadline);
  call.sink = self;
  call.admitted = [self](const std::shared_ptr<RequestFlow>& flow) { self->Admitted(flow); };
  router.Generate(BytesOf(request), std::move(call));
  return self.get();
}

GenerateCall::GenerateCall(rpc::EventLoop& loop, grpc::CallbackServerContext& context)
    : loop_(loop), context_(context) {}

void GenerateCall::Admitted(const std::shared_ptr<RequestFlow>& flow) {
  flow_ = flow;
  if (cancelled_) Cancelled();
}

void GenerateCall::Send(const setu::v1::GenerateResponse& response) {
  if (cancelled_) return;
  Outgoing out;
  out.bytes = BufferOf(response.SerializeAsString());
  if (response.has_delta() && !response.delta().echo()) {
    out.choice = response.delta().index();
    out.next_index =
        static_cast<int32_t>(response.delta().first_token()) + response.delta().token_ids_size();
  }
  queue_.push_back(std::move(out));
  if (queue_.size() == 1) WriteNext();
}

void GenerateCall::WriteNext() { StartWrite(&queue_.front().bytes); }

void GenerateCall::OnWriteDone(bool ok) {
  loop_.PostCompletion([this, ok] { Written(ok); });
}

void GenerateCall::Written(bool ok) {
  const Outgoing written = std::move(queue_.front());
  queue_.pop_front();
  if (!ok || cancelled_) queue_.clear();
  const std::shared_ptr<RequestFlow> flow = flow_.lock();
  if (ok && flow && written.next_index) flow->Took(written.choice, *written.next_index);
  if (!queue_.empty()) {
    WriteNext();
  } else if (end_) {
    FinishNow();
  }
}

void GenerateCall::End(const FlowEnd& end) {
  end_ = end;
  if (queue_.empty()) return FinishNow();
  last_moment_ = loop_.At(loop_.clock().Now() + kLastMoment, [this] {
    last_moment_.reset();
    context_.TryCancel();  // Finish was not called yet, so the context still lives
  });
}

void GenerateCall::FinishNow() {
  if (last_moment_) loop_.Cancel(*last_moment_);
  if (end_->status.ok()) return Finish(grpc::Status::OK);
  context_.AddTrailingMetadata("last-index", absl::StrJoin(end_->last_index, ","));
  const bool nothing_sent = std::all_of(end_->last_index.begin(), end_->last_index.end(),
                                        [](int32_t i) { return i < 0; });
  if (end_->retry_after && nothing_sent) {
    return Finish(
        rpc::Exhausted(std::string(end_->status.message()), *end_->retry_after, context_));
  }
  Finish(rpc::ToGrpc(end_->status));
}

void GenerateCall::OnCancel() {
  loop_.PostCompletion([self = self_] { self->Cancelled(); });
}

void GenerateCall::Cancelled() {
  cancelled_ = true;
  if (auto flow = flow_.lock()) flow->Cancel(absl::CancelledError("the client left"));
}

void GenerateCall::OnDone() {
  loop_.PostCompletion([self = std::move(self_)] {});
}

}  // namespace setu::router
