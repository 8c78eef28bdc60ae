// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/client.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulator/hash_model.h"

namespace setu::simulator {
namespace {

// Waits end a little before the deadline, so that their answer still arrives.
constexpr Duration kTimeToAnswer = std::chrono::milliseconds(101);

}  // namespace

Client::Client(Timeline& timeline, Judge& judge, Asked& asked, router::ValidRequest request,
               Wish wish)
    : timeline_(timeline),
      judge_(judge),
      asked_(asked),
      wish_(std::move(wish)),
      has_stop_strings_(!request.stop_strings().empty()),
      choices_(request.choices()),
      prompt_(request.prompt_ids()) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].reference = Reference(request, static_cast<uint32_t>(i));
    std::vector<engine::TokenId> ids = prompt_;
    ids.insert(ids.end(), choices_[i].reference.begin(), choices_[i].reference.end());
    // All choices share the prompt, which counts once.
    if (i == 0) asked_.Add(wish_.cache_salt, ids);
  }
  request_ = std::move(request);
}

void Client::Ask(RouterNode& router) {
  timeline_.Tell("ask", " " + wish_.name);
  asked_at_ = timeline_.Now();
  deadline_ = asked_at_ + wish_.patience;
  router_ = &router;
  router::Arrival arrival;
  arrival.uuid = arrival.label = wish_.name;
  arrival.at = asked_at_;
  arrival.deadline = deadline_;
  arrival.share = wish_.share;
  arrival.cache_salt = wish_.cache_salt;
  if (!router.up()) {
    end_ = absl::UnavailableError("connection refused");
    return;
  }
  router.Generate(std::move(arrival), *std::move(request_), shared_from_this(),
                  [this](std::weak_ptr<router::RequestFlow> flow) { flow_ = std::move(flow); });
  if (!wish_.leaves) return;
  timeline_.After(*wish_.leaves, [self = shared_from_this()] {
    if (self->end_) return;
    self->left_ = true;
    self->timeline_.Tell("leave", " " + self->wish_.name);
    self->router_->Receive([self] {
      if (const auto flow = self->flow_.lock()) {
        flow->Cancel(absl::CancelledError("the client left"));
        self->router_->Wake();
      }
    });
  });
}

int64_t Client::tokens() const {
  int64_t tokens = 0;
  for (const Choice& choice : choices_) tokens += choice.delivered;
  return tokens;
}

void Client::Blame(const std::string& what) { judge_.Blame(absl::StrCat(wish_.name, ": ", what)); }

void Client::Send(const setu::v1::GenerateResponse& response) {
  if (end_) return Blame("something after the end");
  if (response.has_started()) {
    if (std::exchange(started_, true)) Blame("started twice");
    CheckCached(response.started().cached_tokens());
  } else if (!started_) {
    Blame("something before started");
  }
  Message message;
  if (response.has_delta()) {
    On(response.delta());
    message = {response.delta().index(), choices_[response.delta().index()].delivered};
  } else if (response.has_finished()) {
    On(response.finished());
  }
  untaken_.push_back(message);
  if (!std::exchange(taking_, true)) Take();
}

// As GenerateCall::Written: what has gone out is told to the flow.
void Client::Take() {
  timeline_.After(wish_.pause, [self = shared_from_this()] {
    const Message taken = self->untaken_.front();
    self->untaken_.pop_front();
    self->router_->Receive([self, taken] {
      const auto flow = self->flow_.lock();
      if (flow == nullptr) return;
      flow->Took(taken.choice, taken.next_index);
      self->router_->Wake();
    });
    self->taking_ = !self->untaken_.empty();
    if (self->taking_) self->Take();
  });
}

// Blocks of another tenant's, or of nobody's, were not found.
void Client::CheckCached(uint32_t tokens) {
  const int32_t most =
      asked_.CommonTokens(wish_.cache_salt, prompt_, wish_.excuses.may_begin_twice ? 1 : 2);
  if (static_cast<int32_t>(tokens) > most) {
    Blame(absl::StrCat(tokens, " tokens known before, others of its tenant asked for ", most));
  }
}

void Client::On(const setu::v1::Delta& delta) {
  Choice& choice = choices_[delta.index()];
  if (choice.finished) return Blame("tokens after finished");
  if (static_cast<int32_t>(delta.first_token()) != choice.delivered) {
    return Blame(absl::StrCat("token ", delta.first_token(), " after ", choice.delivered));
  }
  for (const uint32_t id : delta.token_ids()) {
    if (choice.delivered >= std::ssize(choice.reference))
      return Blame("more tokens than there are");
    if (static_cast<int32_t>(id) != choice.reference[choice.delivered]) {
      return Blame(absl::StrCat("choice ", delta.index(), " token ", choice.delivered, " is ", id,
                                ", must be ", choice.reference[choice.delivered]));
    }
    ++choice.delivered;
  }
}

void Client::On(const setu::v1::Finished& finished) {
  Choice& choice = choices_[finished.index()];
  if (std::exchange(choice.finished, true)) return Blame("finished twice");
  const auto completion = static_cast<int32_t>(finished.usage().completion_tokens());
  if (completion != choice.delivered) Blame("usage differs from what was delivered");
  cached_tokens_ = static_cast<int32_t>(finished.usage().cached_tokens());
  CheckTimings(finished.timings());
  if (finished.timings().attempts() == 1) CheckCached(finished.usage().cached_tokens());
  const bool whole = choice.delivered == std::ssize(choice.reference);
  if (!whole && (!has_stop_strings_ || finished.stop_match().empty())) {
    Blame(absl::StrCat("finished after ", choice.delivered, " of ", choice.reference.size()));
  }
}

// The phases are all of its time, whatever became of the workers.
void Client::CheckTimings(const setu::v1::Timings& t) {
  constexpr double kRoundingMs = 1e-6;
  const auto differ = [](double a, double b) { return std::abs(a - b) > kRoundingMs; };
  const double first_token = t.queue_ms() + t.grant_ms() + t.prefill_ms();
  if (differ(first_token + t.decode_ms(), Milliseconds(timeline_.Now() - asked_at_)) ||
      differ(first_token, t.first_token_ms()) ||
      std::min({t.queue_ms(), t.grant_ms(), t.prefill_ms(), t.decode_ms()}) < 0 ||
      t.transfer_ms() > t.decode_ms() || t.attempts() == 0) {
    Blame(absl::StrCat("timings do not add up: ", t.ShortDebugString()));
  }
}

void Client::End(const router::FlowEnd& end) {
  if (end_) return Blame("two ends");
  end_ = end.status;
  timeline_.Tell(absl::StatusCodeToString(end.status.code()).c_str(),
                 absl::StrCat(" ", wish_.name, " ", tokens(), " tokens ", end.status.message()));
  CheckEnd(end);
}

void Client::CheckEnd(const router::FlowEnd& end) {
  using Code = absl::StatusCode;
  const bool all = std::all_of(choices_.begin(), choices_.end(),
                               [](const Choice& choice) { return choice.finished; });
  const auto allow = [&](bool right) {
    if (!right) Blame(absl::StrCat("may not end ", end.status.ToString()));
  };
  switch (end.status.code()) {
    case Code::kOk:
      allow(all);
      break;
    case Code::kCancelled:
      allow(left_);
      break;
    case Code::kDeadlineExceeded:
      allow(timeline_.Now() + kTimeToAnswer >= deadline_);
      break;
    case Code::kAborted:
      allow(wish_.pause > Duration::zero() || wish_.excuses.may_fail);
      break;
    case Code::kResourceExhausted:
      allow(wish_.excuses.may_be_refused && tokens() == 0);
      break;
    case Code::kUnavailable:
      allow(wish_.excuses.may_fail);
      break;
    default:
      allow(wish_.excuses.may_break &&
            (absl::IsInternal(end.status) || absl::IsDataLoss(end.status) ||
             absl::IsInvalidArgument(end.status)));
  }
  if (end.status.ok() || end.last_index.size() != choices_.size()) return;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (end.last_index[i] != choices_[i].delivered - 1) Blame("last_index is not the last one");
  }
}

}  // namespace setu::simulator
