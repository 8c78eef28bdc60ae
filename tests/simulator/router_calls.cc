// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/router_calls.h"

#include <utility>

#include "tests/simulator/call.h"
#include "tests/simulator/decode_node.h"
#include "tests/simulator/prefill_node.h"

namespace setu::simulator {
namespace {

namespace v1 = worker::v1;

template <typename Response>
std::shared_ptr<CallerEnd<Response>> Listening(rpc::EventLoop& loop,
                                               const std::shared_ptr<Pipe>& pipe,
                                               rpc::StreamEvents<Response> events) {
  auto end = std::make_shared<CallerEnd<Response>>(loop, pipe, std::move(events));
  end->Listen();
  return end;
}

template <typename Response>
class Reading final : public rpc::ReadableCall {
 public:
  explicit Reading(std::shared_ptr<CallerEnd<Response>> end) : end_(std::move(end)) {}
  ~Reading() override { end_->Detach(); }
  void Read() override { end_->Read(); }

 private:
  const std::shared_ptr<CallerEnd<Response>> end_;
};

class Decoding final : public rpc::DuplexCall<v1::DecodeRequest> {
 public:
  using Session = std::shared_ptr<std::shared_ptr<DecodeSession>>;
  Decoding(std::shared_ptr<Pipe> pipe, std::shared_ptr<CallerEnd<v1::DecodeResponse>> end,
           Session session)
      : pipe_(std::move(pipe)), end_(std::move(end)), session_(std::move(session)) {}
  ~Decoding() override { end_->Detach(); }
  void Read() override { end_->Read(); }
  bool Write(v1::DecodeRequest request) override {
    const char* what = request.has_open()          ? "open"
                       : request.has_retry()       ? "retry"
                       : request.has_stop_choice() ? "stop-choice"
                                                   : "delivered";
    pipe_->SendUp(what, request.ByteSizeLong(), [session = session_, request = std::move(request)] {
      if (*session != nullptr) (*session)->Take(request);
    });
    return true;
  }

 private:
  const std::shared_ptr<Pipe> pipe_;
  const std::shared_ptr<CallerEnd<v1::DecodeResponse>> end_;
  const Session session_;
};

Node& NodeAt(const Nodes& nodes, const std::string& address) {
  const auto decode = nodes.decode.find(address);
  if (decode != nodes.decode.end()) return *decode->second;
  return *nodes.prefill.at(address);
}

LoadReports& ReportsOf(const Nodes& nodes, const std::string& address) {
  const auto decode = nodes.decode.find(address);
  if (decode != nodes.decode.end()) return decode->second->reports();
  return nodes.prefill.at(address)->reports();
}

}  // namespace

std::unique_ptr<rpc::OpenCall> RouterCalls::Describe(const std::string& address,
                                                     const rpc::CallOptions& options,
                                                     Described done) {
  const auto pipe = network_.Open(router_, NodeAt(nodes_, address), "describe");
  rpc::StreamEvents<v1::DescribeResponse> events;
  events.read = [done](v1::DescribeResponse& description) { done(std::move(description)); };
  events.done = [done](const absl::Status& status) { done(status); };
  const auto end = Listening(loop_, pipe, std::move(events));
  end->Read();
  pipe->SendUp(
      "describe", 0,
      [&nodes = nodes_, address, answers = Answers(pipe, end)] {
        answers.Send("description", ReportsOf(nodes, address).description());
      },
      Pipe::Kind::kControl);
  router_.At(options.deadline, [weak = std::weak_ptr(end)] {
    const auto end = weak.lock();
    if (end != nullptr) end->Ended(absl::DeadlineExceededError("the call's deadline passed"));
  });
  return std::make_unique<Reading<v1::DescribeResponse>>(end);
}

std::unique_ptr<rpc::ReadableCall> RouterCalls::WatchLoad(
    const std::string& address, const rpc::CallOptions&,
    rpc::StreamEvents<v1::WatchLoadResponse> events) {
  const auto pipe = network_.Open(router_, NodeAt(nodes_, address), "watch");
  const auto end = Listening(loop_, pipe, std::move(events));
  pipe->SendUp(
      "watch", 0,
      [&nodes = nodes_, address, answers = Answers(pipe, end)] {
        ReportsOf(nodes, address).Watch(answers);
      },
      Pipe::Kind::kControl);
  return std::make_unique<Reading<v1::WatchLoadResponse>>(end);
}

std::unique_ptr<rpc::DuplexCall<v1::DecodeRequest>> RouterCalls::Decode(
    const std::string& address, const rpc::CallOptions&,
    rpc::StreamEvents<v1::DecodeResponse> events) {
  DecodeNode& node = *nodes_.decode.at(address);
  const auto pipe = network_.Open(router_, node, "decode");
  const auto end = Listening(loop_, pipe, std::move(events));
  const auto session = std::make_shared<std::shared_ptr<DecodeSession>>();
  pipe->SendUp(
      "decode", 0,
      [&node, session, answers = Answers(pipe, end)] { *session = node.Accept(answers); },
      Pipe::Kind::kControl);
  return std::make_unique<Decoding>(pipe, end, session);
}

std::unique_ptr<rpc::ReadableCall> RouterCalls::Prefill(
    const std::string& address, const rpc::CallOptions&, const v1::PrefillRequest& request,
    rpc::StreamEvents<v1::PrefillResponse> events) {
  PrefillNode& node = *nodes_.prefill.at(address);
  const auto pipe = network_.Open(router_, node, "prefill");
  const auto end = Listening(loop_, pipe, std::move(events));
  pipe->SendUp(
      "prefill", request.ByteSizeLong(),
      [&node, request, answers = Answers(pipe, end)] { node.Accept(request, answers); },
      Pipe::Kind::kControl);
  return std::make_unique<Reading<v1::PrefillResponse>>(end);
}

}  // namespace setu::simulator
