// SPDX-License-Identifier: Apache-2.0
#include "services/router/answer.h"

#include <algorithm>

#include "common/base/check.h"

namespace setu::router {

Answer::Answer(const tokenizer::Tokenizer& tokenizer, const ValidRequest& request, int32_t choice)
    : request_(request), choice_(choice), decoder_(tokenizer), matcher_(request.stop_strings()) {}

std::optional<v1::Delta> Answer::Push(int32_t first_index,
                                      std::span<const engine::SampledToken> tokens) {
  if (stopped_) return std::nullopt;
  SETU_CHECK(first_index >= 0 && static_cast<size_t>(first_index) <= ids_.size(),
             "tokens come without a gap");
  const size_t known = ids_.size() - static_cast<size_t>(first_index);
  for (size_t i = known; i < tokens.size() && !stopped_; ++i) Take(tokens[i]);
  return Release(ReadyGroups());
}

std::pair<std::optional<v1::Delta>, v1::Finished> Answer::Finish(engine::EndReason reason) {
  if (!stopped_) FlushDecoder();
  SETU_CHECK(stopped_ || reason != engine::EndReason::kNone, "an answer ends for a reason");
  v1::Finished finished;
  finished.set_index(static_cast<uint32_t>(choice_));
  const bool length = !stopped_ && reason == engine::EndReason::kMaxTokens;
  finished.set_finish_reason(length ? v1::FINISH_REASON_LENGTH : v1::FINISH_REASON_STOP);
  finished.set_stop_match(stop_match_);
  finished.mutable_usage()->set_completion_tokens(static_cast<uint32_t>(ids_.size()));
  return {Release(held_.size()), std::move(finished)};
}

void Answer::Take(const engine::SampledToken& token) {
  const std::vector<engine::TokenId>& end_ids = request_.sampling().end_ids;
  const bool ends = std::binary_search(end_ids.begin(), end_ids.end(), token.id);
  if (ends) FlushDecoder();
  if (stopped_) return;  // what was flushed completed a stop string: the end id is overshoot
  ids_.push_back(token.id);
  if (!decoder_.holding()) held_.push_back({.tokens = {}, .text = {}, .end = text_bytes_});
  held_.back().tokens.push_back(token);
  if (!ends) Append(decoder_.Push(token.id));
}

// `text` belongs to the last group.
void Answer::Append(std::string_view text) {
  held_.back().text += text;
  held_.back().end = text_bytes_ += text.size();
  const bool may_match = ids_.size() >= static_cast<size_t>(request_.sampling().min_tokens);
  const auto match = matcher_.Feed(text, may_match);
  if (!match) return;
  stopped_ = true;
  stop_match_ = *match->stop;
  size_t excess = text.size() - match->end + stop_match_.size();
  for (auto group = held_.rbegin(); excess > 0; ++group) {
    const size_t cut = std::min(excess, group->text.size());
    group->text.resize(group->text.size() - cut);
    excess -= cut;
  }
}

// An unfinished character stays one: its tokens wait in the last group.
void Answer::FlushDecoder() {
  if (decoder_.holding()) Append(decoder_.Flush());
}

size_t Answer::ReadyGroups() const {
  if (stopped_) return held_.size();
  const size_t free_bytes = text_bytes_ - matcher_.pending();
  const size_t whole = held_.size() - (decoder_.holding() ? 1 : 0);
  size_t ready = 0;
  while (ready < whole && held_[ready].end <= free_bytes) ++ready;
  return ready;
}

std::optional<v1::Delta> Answer::Release(size_t groups) {
  if (groups == 0) return std::nullopt;
  v1::Delta delta;
  delta.set_index(static_cast<uint32_t>(choice_));
  delta.set_first_token(static_cast<uint32_t>(delivered_));
  for (; groups > 0; --groups, held_.pop_front()) {
    delta.mutable_text()->append(held_.front().text);
    for (const engine::SampledToken& token : held_.front().tokens) {
      delta.add_token_ids(static_cast<uint32_t>(token.id));
      ++delivered_;
      if (!request_.sampling().want_logprobs) continue;
      v1::TokenLogprobs& logprobs = *delta.add_logprobs();
      logprobs.set_logprob(token.logprob);
      for (const engine::TopToken& top : token.top) {
        v1::TopLogprob& entry = *logprobs.add_top();
        entry.set_token_id(static_cast<uint32_t>(top.id));
        entry.set_logprob(top.logprob);
      }
    }
  }
  return delta;
}

}  // namespace setu::router
