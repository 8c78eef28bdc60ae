// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/client_group.h"

#include <utility>

namespace setu::cli {

ClientGroup::ClientGroup(RoundContext& context, const Workload& workload, const Seeds& seeds,
                         TimePoint timeline_start, std::function<void()> on_over)
    : context_(context),
      workload_(workload),
      plan_(workload, seeds),
      pace_(workload, seeds.shape),
      tally_(workload.targets, timeline_start),
      on_over_(std::move(on_over)),
      sent_prefixes_(workload.prefixes ? static_cast<size_t>(workload.prefixes->count) : 0) {}

// Until nothing may start any more: a request that is sent lets time pass, and others come due.
void ClientGroup::Pump() {
  if (!on_over_) return;
  if (timer_) context_.loop.Cancel(*std::exchange(timer_, std::nullopt));
  while (true) {
    const int64_t index = pace_.started();
    const auto planned = pace_.Due(Elapsed(), static_cast<int64_t>(open_.size()));
    if (!planned) break;
    Send(index, *planned);
  }
  if (pace_.Over(Elapsed())) {
    if (!std::exchange(all_sent_, true)) tally_.OnLastSent(Elapsed());
    if (open_.empty()) BeOver();
  } else if (const auto next = pace_.Next()) {
    timer_ = context_.loop.At(context_.begin + *next, [this] {
      timer_.reset();
      Pump();
    });
  }
}

void ClientGroup::Send(int64_t index, Duration planned) {
  const PlannedRequest request = plan_.Request(index);
  RequestTrack track{.planned = context_.begin + planned};
  const TimePoint now = context_.loop.clock().Now();
  // A closed loop is bounded by its clients.
  if (IsOpen(workload_.arrivals) && context_.open >= context_.most_open) {
    tally_.OnEnd(track, kNotSent, "as many streams as --max-open says were open already", now);
    return;
  }
  track.reusable_tokens = Reusable(request);
  tally_.OnSent(track, now);
  ++context_.open;
  Exchange& exchange = open_[index];
  exchange.track = track;
  exchange.cancel_after = request.cancel_after;
  exchange.stream = context_.client.Generate(
      context_.loop, MakeRequest(index, request), workload_.token, workload_.deadline,
      {.read = [this, index](v1::GenerateResponse& response) { OnResponse(index, response); },
       .done =
           [this, index](const absl::Status& status) {
             End(index, absl::StatusCodeToString(status.code()), std::string(status.message()));
           }});
  exchange.stream->Read();
}

v1::GenerateRequest ClientGroup::MakeRequest(int64_t index, const PlannedRequest& request) const {
  v1::GenerateRequest message;
  const std::vector<uint32_t> ids = plan_.Prompt(index, request, context_.vocabulary);
  message.mutable_token_ids()->mutable_ids()->Add(ids.begin(), ids.end());
  message.mutable_sampling()->set_max_tokens(static_cast<uint32_t>(request.max_tokens));
  message.mutable_sampling()->set_temperature(0);
  message.mutable_stopping()->set_ignore_eos(true);
  return message;
}

int64_t ClientGroup::Reusable(const PlannedRequest& request) {
  if (!request.prefix) return 0;
  const auto prefix = static_cast<size_t>(*request.prefix);
  const bool before = sent_prefixes_[prefix];
  sent_prefixes_[prefix] = true;
  return before ? workload_.prefixes->tokens : 0;
}

void ClientGroup::OnResponse(int64_t index, const v1::GenerateResponse& response) {
  Exchange& exchange = open_.at(index);
  if (response.has_finished()) {
    exchange.track.prompt_tokens = response.finished().usage().prompt_tokens();
    exchange.track.cached_tokens = response.finished().usage().cached_tokens();
  }
  if (const int tokens = response.delta().token_ids_size(); tokens > 0) {
    tally_.OnTokens(exchange.track, context_.loop.clock().Now(), tokens);
    if (exchange.cancel_after && exchange.track.tokens >= *exchange.cancel_after) {
      return End(index, kCancelledByPlan, "");
    }
  }
  exchange.stream->Read();
}

// A stream may not die inside its own callback: it does in the loop's next turn, which cancels the
// call where it has not ended. Said outright, for the loop keeps what it ran until more arrives.
void ClientGroup::End(int64_t index, const std::string& status, const std::string& error) {
  Exchange ended = std::move(open_.extract(index).mapped());
  --context_.open;
  tally_.OnEnd(ended.track, status, error, context_.loop.clock().Now());
  context_.loop.PostCompletion([stream = std::move(ended.stream)]() mutable { stream.reset(); });
  context_.on_end();
  Pump();
}

void ClientGroup::Stop() {
  if (!on_over_) return;
  if (timer_) context_.loop.Cancel(*timer_);
  context_.open -= static_cast<int64_t>(open_.size());
  open_.clear();
  BeOver();
}

void ClientGroup::BeOver() {
  if (!all_sent_) tally_.OnLastSent(Elapsed());
  tally_.OnOver(Elapsed());
  std::exchange(on_over_, nullptr)();
}

}  // namespace setu::cli
