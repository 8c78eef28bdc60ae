// SPDX-License-Identifier: Apache-2.0
// One choice of a request, from sampled tokens to what the client sees: detokenises, holds back
// unfinished characters and text that may still become a stop string (ids and logprobs wait with
// their text), drops what was delivered before, and says when a stop string ended it. Pure.
//
//   Answer answer(tokenizer, request, /*choice=*/0);
//   std::optional<v1::Delta> delta = answer.Push(first_index, tokens);
//   if (answer.stopped()) ...               // a stop string matched: stop the choice
//   auto [last, finished] = answer.Finish(engine::EndReason::kEndId);
#ifndef SETU_SERVICES_ROUTER_ANSWER_H_
#define SETU_SERVICES_ROUTER_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/engine/sampling_params.h"
#include "common/tokenizer/tokenizer.h"
#include "services/router/stop_matcher.h"
#include "services/router/valid_request.h"
#include "setu/v1/inference.pb.h"

namespace setu::router {

class Answer {
 public:
  // tokenizer and request must outlive this.
  Answer(const tokenizer::Tokenizer& tokenizer, const ValidRequest& request, int32_t choice);

  // Tokens from generated index `first_index` on. Indexes taken before are dropped (a resumed
  // sequence and the first token's second way repeat some); a gap is a bug. Nothing is taken after
  // stopped(). The delta holds all that may go out now; nullopt where that is nothing.
  std::optional<v1::Delta> Push(int32_t first_index, std::span<const engine::SampledToken> tokens);

  // Ends the choice by an end id, by max_tokens or, where stopped(), by its stop string: flushes
  // what was held back and fills index, finish_reason, stop_match and the usage's
  // completion_tokens.
  std::pair<std::optional<v1::Delta>, v1::Finished> Finish(engine::EndReason reason);

  bool stopped() const { return stopped_; }
  // All ids taken so far (generated index 0 on), also those whose text is held back: what a resume
  // sends behind the prompt.
  const std::vector<engine::TokenId>& ids() const { return ids_; }
  // One past the last generated index that left in a delta; -1 + 1 = 0 where nothing was sent.
  int32_t delivered() const { return delivered_; }

 private:
  // Tokens that share characters, so that all go out together: most often one.
  struct Group {
    std::vector<engine::SampledToken> tokens;
    std::string text;
    size_t end = 0;  // of its text within all text so far
  };
  void Take(const engine::SampledToken& token);
  void Append(std::string_view text);
  void FlushDecoder();
  size_t ReadyGroups() const;
  std::optional<v1::Delta> Release(size_t groups);

  const ValidRequest& request_;
  const int32_t choice_;
  tokenizer::StreamDecoder decoder_;
  StopMatcher matcher_;
  std::vector<engine::TokenId> ids_;
  std::deque<Group> held_;
  size_t text_bytes_ = 0;
  std::string stop_match_;
  int32_t delivered_ = 0;
  bool stopped_ = false;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_ANSWER_H_
