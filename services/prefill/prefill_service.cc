// SPDX-License-Identifier: Apache-2.0
#include "services/prefill/prefill_service.h"

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"

namespace setu::prefill {
namespace {

constexpr size_t kMaxAddressBytes = 256;
// A place in the queue is free again after a few steps.
constexpr std::chrono::milliseconds kRetryAfter(200);

uint64_t Microseconds(Duration d) {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

}  // namespace

absl::StatusOr<Prompt> ReadPrompt(const worker::v1::PrefillRequest& request,
                                  const PromptLimits& limits) {
  // Before the ids are copied.
  if (request.sequence().ids_size() > limits.tokens) {
    return absl::InvalidArgumentError(absl::StrCat("prompt has ", request.sequence().ids_size(),
                                                   " tokens, this worker takes at most ",
                                                   limits.tokens));
  }
  if (request.decode_address().empty() || request.decode_address().size() > kMaxAddressBytes) {
    return absl::InvalidArgumentError(absl::StrCat("decode_address has ",
                                                   request.decode_address().size(),
                                                   " bytes, must have 1 to ", kMaxAddressBytes));
  }
  Prompt prompt;
  SETU_ASSIGN_OR_RETURN(prompt.sequence, wire::FromProto(request.sequence(), limits.vocabulary));
  const int32_t blocks = kv::BlocksFor(request.sequence().ids_size(), limits.block_tokens);
  if (request.blocks_held() > static_cast<uint32_t>(blocks)) {
    return absl::InvalidArgumentError(absl::StrCat("blocks_held is ", request.blocks_held(),
                                                   ", the prompt has ", blocks, " blocks"));
  }
  prompt.attempt = request.attempt();
  prompt.decode_address = request.decode_address();
  prompt.blocks_held = static_cast<int32_t>(request.blocks_held());
  prompt.resumed = request.resumed();
  return prompt;
}

// One call. The loop's thread and gRPC's meet here: events wait until the write before them is out.
// Lives until OnDone and as long as the loop holds it as the prompt's reply.
class PrefillService::Stream final : public grpc::ServerWriteReactor<worker::v1::PrefillResponse>,
                                     public Reply {
 public:
  static std::shared_ptr<Stream> Make(Loop& loop) {
    auto stream = std::make_shared<Stream>(loop);
    stream->self_ = stream;
    return stream;
  }
  explicit Stream(Loop& loop) : loop_(loop) {}

  // Before the call's method returns, so before OnCancel.
  void set_id(PromptId id) { id_ = id; }

  void FirstTokens(const std::vector<wire::FirstToken>& tokens, Duration queued, Duration computed,
                   int32_t known_tokens) override {
    worker::v1::PrefillResponse response;
    worker::v1::FirstTokens& first = *response.mutable_first_tokens();
    for (const wire::FirstToken& token : tokens) *first.add_tokens() = wire::ToProto(token);
    first.set_queue_us(Microseconds(queued));
    first.set_compute_us(Microseconds(computed));
    first.set_cached_tokens(static_cast<uint32_t>(known_tokens));
    Send(std::move(response));
  }
  void Pushed(uint64_t kv_bytes, Duration tail) override {
    worker::v1::PrefillResponse response;
    response.mutable_pushed()->set_kv_bytes(kv_bytes);
    response.mutable_pushed()->set_tail_us(Microseconds(tail));
    Send(std::move(response));
  }
  void PushFailed() override {
    worker::v1::PrefillResponse response;
    response.mutable_push_failed();
    Send(std::move(response));
  }
  void End(const absl::Status& status) override { Close(rpc::ToGrpc(status)); }

  void Close(const grpc::Status& status) {
    std::lock_guard lock(mutex_);
    if (!end_) end_ = status;
    Advance();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) events_.clear();  // nobody reads them; OnCancel follows
    Advance();
  }
  // Does not wait for the loop: the call ends at once, the work within two steps.
  void OnCancel() override {
    loop_.Cancel(id_);
    std::lock_guard lock(mutex_);
    events_.clear();
    end_ = grpc::Status::CANCELLED;
    Advance();
  }
  void OnDone() override { const std::shared_ptr<Stream> last = std::move(self_); }

 private:
  void Send(worker::v1::PrefillResponse response) {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(response));
    Advance();
  }

  void Advance() {
    if (writing_ || finished_) return;
    if (!events_.empty()) {
      writing_ = true;
      current_ = std::move(events_.front());
      events_.pop_front();
      StartWrite(&current_);
    } else if (end_) {
      finished_ = true;
      Finish(*end_);
    }
  }

  Loop& loop_;
  PromptId id_ = 0;
  std::shared_ptr<Stream> self_;
  std::mutex mutex_;                                // guards the rest
  std::deque<worker::v1::PrefillResponse> events_;  // two at most
  std::optional<grpc::Status> end_;
  worker::v1::PrefillResponse current_;
  bool writing_ = false;
  bool finished_ = false;
};

grpc::ServerWriteReactor<worker::v1::PrefillResponse>* PrefillService::Prefill(
    grpc::CallbackServerContext* context, const worker::v1::PrefillRequest* request) {
  const std::shared_ptr<Stream> stream = Stream::Make(loop_);
  absl::StatusOr<Prompt> prompt = ReadPrompt(*request, limits_);
  if (!prompt.ok()) {
    ++invalid_;
    stream->End(prompt.status());
    return stream.get();
  }
  prompt->reply = stream;
  absl::StatusOr<PromptId> id = loop_.Admit(*std::move(prompt));
  if (id.ok()) {
    stream->set_id(*id);
  } else if (absl::IsResourceExhausted(id.status())) {
    stream->Close(rpc::Exhausted(std::string(id.status().message()), kRetryAfter, *context));
  } else {
    stream->End(id.status());
  }
  return stream.get();
}

}  // namespace setu::prefill
