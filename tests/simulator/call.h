// SPDX-License-Identifier: Apache-2.0
// A call of the router's through a pipe: the caller's end, which hands messages to the router's
// loop one by one as they are asked for, and the callee's way back to it.
//
//   auto end = std::make_shared<CallerEnd<DecodeResponse>>(loop, pipe, events);   // the caller
//   end->Read();
//   Answers<DecodeResponse> answers(pipe, end);                                   // the callee
//   answers.Send("ready", response);
//   answers.End(absl::OkStatus());
#ifndef SETU_TESTS_SIMULATOR_CALL_H_
#define SETU_TESTS_SIMULATOR_CALL_H_

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/open_call.h"
#include "tests/simulator/network.h"

namespace setu::simulator {

template <typename Response>
class CallerEnd : public std::enable_shared_from_this<CallerEnd<Response>> {
 public:
  CallerEnd(rpc::EventLoop& loop, std::shared_ptr<Pipe> pipe, rpc::StreamEvents<Response> events)
      : loop_(loop), pipe_(std::move(pipe)), events_(std::move(events)) {}

  // Before anything comes.
  void Listen() {
    pipe_->OnEndAtCaller([weak = this->weak_from_this()](const absl::Status& why) {
      if (const auto self = weak.lock()) self->Ended(why);
    });
  }
  void Read() {
    reading_ = true;
    HandOver();
  }
  void Detach() {
    detached_ = true;
    pipe_->Cancel();
  }
  void Arrived(Response response) {
    waiting_.push_back(std::move(response));
    HandOver();
  }
  void Ended(const absl::Status& status) {
    if (end_) return;
    end_ = status;
    HandOver();
  }

 private:
  void HandOver() {
    if (detached_ || !reading_ || (waiting_.empty() && !end_)) return;
    reading_ = false;
    loop_.PostCompletion([self = this->shared_from_this()] {
      if (self->detached_) return;
      if (self->waiting_.empty()) {
        self->detached_ = true;  // that was the last of it
        return self->events_.done(*self->end_);
      }
      Response first = std::move(self->waiting_.front());
      self->waiting_.pop_front();
      self->events_.read(first);
    });
    pipe_->caller().Wake();
  }

  rpc::EventLoop& loop_;
  const std::shared_ptr<Pipe> pipe_;
  const rpc::StreamEvents<Response> events_;
  std::deque<Response> waiting_;
  std::optional<absl::Status> end_;
  bool reading_ = false;
  bool detached_ = false;
};

template <typename Response>
class Answers {
 public:
  Answers(std::shared_ptr<Pipe> pipe, std::shared_ptr<CallerEnd<Response>> end)
      : pipe_(std::move(pipe)), end_(std::move(end)) {}

  void Send(const char* what, Response response) const {
    pipe_->SendDown(what, response.ByteSizeLong(),
                    [end = end_, response = std::move(response)] { end->Arrived(response); });
  }
  void End(const absl::Status& status) const {
    pipe_->SendDown(
        "end", 0,
        [pipe = pipe_, end = end_, status] {
          pipe->Close();
          end->Ended(status);
        },
        Pipe::Kind::kControl);
  }
  Pipe& pipe() const { return *pipe_; }

 private:
  std::shared_ptr<Pipe> pipe_;
  std::shared_ptr<CallerEnd<Response>> end_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_CALL_H_
