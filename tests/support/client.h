// SPDX-License-Identifier: Apache-2.0
// A client of the public API for tests: one call, everything it got, and every promise of the
// stream's shape checked on the way (one `started`, no gap, no repeat, one `finished` a choice, and
// none of a choice that was cut short).
#ifndef SETU_TESTS_SUPPORT_CLIENT_H_
#define SETU_TESTS_SUPPORT_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "setu/v1/inference.grpc.pb.h"

namespace setu::test {

struct Choice {
  std::vector<uint32_t> ids;  // from generated index 0 on
  std::string text;
  std::string echo;
  std::vector<v1::TokenLogprobs> logprobs;
  std::vector<v1::Finished> finished;  // at most one
};

struct Answer {
  grpc::Status status;
  std::vector<v1::Started> started;
  std::map<uint32_t, Choice> choices;
  std::multimap<std::string, std::string> trailers;
  // What broke the promises of the stream; empty where nothing did.
  std::vector<std::string> broken;

  bool ok() const { return status.ok() && broken.empty(); }
  const std::vector<uint32_t>& ids(uint32_t choice = 0) { return choices[choice].ids; }
  // Highest index that the stream says to have sent; "none" where it does not say.
  std::string LastIndex() const;
  std::string Explain() const;
};

struct CallOptions {
  std::chrono::milliseconds deadline = std::chrono::seconds(60);
  std::map<std::string, std::string> headers = {};
  // Called after each response; false cancels the call.
  std::function<bool(const v1::GenerateResponse&)> keep_going;
};

// Calls `act` at each response from `tokens` delivered tokens on, until it says that it has acted.
CallOptions ActAfter(uint32_t tokens, std::function<bool()> act);

Answer Generate(v1::InferenceService::Stub& stub, const v1::GenerateRequest& request,
                const CallOptions& options = {});

// A greedy request of ids.
v1::GenerateRequest GreedyRequest(const std::vector<uint32_t>& ids, uint32_t max_tokens);
v1::GenerateRequest GreedyText(const std::string& text, uint32_t max_tokens);
// More tokens than a decode worker may be ahead of its reader (256), so that a fault that waits for
// the client to have some mostly finds work; more may be under way to a client that reads late.
v1::GenerateRequest LongRequest();

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_CLIENT_H_
