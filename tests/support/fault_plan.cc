// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fault_plan.h"

#include <algorithm>
#include <utility>

#include "setu/worker/v1/decode.pb.h"
#include "setu/worker/v1/kv_transfer.pb.h"

namespace setu::test {
namespace {

using Verdict = GrpcProxy::Verdict;
using worker::v1::DecodeResponse;
using worker::v1::PushKvRequest;
using worker::v1::PushKvResponse;

FaultPlan::Place At(const std::string& method, bool answer, int index) {
  return [=](const FaultPlan::Message& message) {
    return message.method == method && message.answer == answer && message.index == index;
  };
}

}  // namespace

FaultPlan::Place FaultPlan::MessageOf(const std::string& method, int index) {
  return At(method, false, index);
}

FaultPlan::Place FaultPlan::AnswerOf(const std::string& method, int index) {
  return At(method, true, index);
}

FaultPlan::Place FaultPlan::Token(int32_t index) {
  return [=](const Message& message) {
    if (message.method != "Decode" || !message.answer) return false;
    auto response = message.Read<DecodeResponse>();
    auto& tokens = *response.mutable_tokens();
    const int32_t wanted = index - static_cast<int32_t>(tokens.first_index()) + 1;
    if (wanted < 1 || wanted > tokens.tokens_size()) return false;
    tokens.mutable_tokens()->DeleteSubrange(wanted, tokens.tokens_size() - wanted);
    message.Replace(response);
    return true;
  };
}

FaultPlan::Place FaultPlan::Commit() {
  return [](const Message& message) {
    return message.method == "PushKv" && !message.answer &&
           message.Read<PushKvRequest>().has_commit();
  };
}

FaultPlan::Place FaultPlan::Committed() {
  return [](const Message& message) {
    return message.method == "Decode" && message.answer &&
           message.Read<DecodeResponse>().has_committed();
  };
}

FaultPlan::Place FaultPlan::Pushed() {
  return [](const Message& message) {
    return message.method == "PushKv" && message.answer &&
           message.Read<PushKvResponse>().committed();
  };
}

void FaultPlan::Arm(Fault fault) {
  std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
  hit_.clear();
}

std::string FaultPlan::Disarm() {
  std::lock_guard lock(mutex_);
  fault_.reset();
  return hit_;
}

Verdict FaultPlan::On(const std::string& worker, const Message& message) {
  std::lock_guard lock(mutex_);
  if (message.index == 0 && !message.answer) {
    if (message.method == "Prefill") serving_["prefill"] = worker;
    if (message.method == "Decode") serving_["decode"] = worker;
  }
  const Stream stream(worker, message.call, message.answer);
  if (!fault_) return Verdict::kPass;
  if (!hit_.empty()) return stream == struck_ ? fault_->rest : Verdict::kPass;
  const bool lost = std::any_of(fault_->lost.begin(), fault_->lost.end(),
                                [&](const Place& place) { return place(message); });
  if (lost) return Verdict::kHold;
  if (!fault_->at(message)) return Verdict::kPass;
  hit_ = serving_.at(fault_->role);
  struck_ = stream;
  fault_->act(hit_);
  return fault_->arrives ? Verdict::kPass : fault_->rest;
}

}  // namespace setu::test
