// SPDX-License-Identifier: Apache-2.0
#include "tests/support/client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace setu::test {
namespace {

class Checker {
 public:
  Checker(const v1::GenerateRequest& request, Answer* answer)
      : request_(request), answer_(answer) {}

  void On(const v1::GenerateResponse& response) {
    if (response.has_started()) OnStarted(response.started());
    if (response.has_delta()) OnDelta(response.delta());
    if (response.has_finished()) OnFinished(response.finished());
  }

  void End() {
    const uint32_t choices = request_.sampling().has_n() ? request_.sampling().n() : 1;
    if (answer_->started.size() > 1) Broken("more than one started");
    uint32_t finished = 0;
    for (const auto& [index, choice] : answer_->choices) {
      if (choice.finished.size() > 1) Broken(absl::StrCat("more than one finished of ", index));
      if (index >= choices) Broken(absl::StrCat("choice ", index, " of ", choices));
      finished += choice.finished.empty() ? 0 : 1;
    }
    if (answer_->status.ok()) {
      if (answer_->started.empty()) Broken("OK without started");
      if (finished != choices) Broken(absl::StrCat("OK with ", finished, " finished choices"));
    } else if (finished == choices && !EndedByClient()) {
      Broken("every choice finished, and yet it failed");
    }
  }

 private:
  void Broken(std::string what) { answer_->broken.push_back(std::move(what)); }

  // By cancelling or by its deadline, which may come when all is said.
  bool EndedByClient() const {
    const grpc::StatusCode code = answer_->status.error_code();
    return code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::DEADLINE_EXCEEDED;
  }

  void OnStarted(const v1::Started& started) {
    if (!answer_->choices.empty()) Broken("started after a delta");
    answer_->started.push_back(started);
  }

  void OnDelta(const v1::Delta& delta) {
    if (answer_->started.empty()) Broken("a delta before started");
    Choice& choice = answer_->choices[delta.index()];
    if (!choice.finished.empty()) Broken("a delta after finished");
    if (delta.echo()) {
      choice.echo += delta.text();
      return;
    }
    if (delta.first_token() != choice.ids.size()) {
      Broken(absl::StrCat("choice ", delta.index(), ": got index ", delta.first_token(), " where ",
                          choice.ids.size(), " was next"));
    }
    choice.text += delta.text();
    choice.ids.insert(choice.ids.end(), delta.token_ids().begin(), delta.token_ids().end());
    choice.logprobs.insert(choice.logprobs.end(), delta.logprobs().begin(), delta.logprobs().end());
  }

  void OnFinished(const v1::Finished& finished) {
    Choice& choice = answer_->choices[finished.index()];
    choice.finished.push_back(finished);
    if (finished.finish_reason() == v1::FINISH_REASON_UNSPECIFIED) Broken("finished for no reason");
    if (finished.usage().completion_tokens() != choice.ids.size()) {
      Broken(absl::StrCat("usage says ", finished.usage().completion_tokens(), " tokens, ",
                          choice.ids.size(), " came"));
    }
    CheckReason(finished, choice.ids.size());
  }

  // What was cut short may not look whole.
  void CheckReason(const v1::Finished& finished, size_t tokens) {
    const v1::Sampling& sampling = request_.sampling();
    const v1::Stopping& stopping = request_.stopping();
    if (finished.finish_reason() == v1::FINISH_REASON_LENGTH && sampling.has_max_tokens() &&
        tokens != sampling.max_tokens()) {
      Broken(
          absl::StrCat("the length was reached at ", tokens, " tokens of ", sampling.max_tokens()));
    }
    if (finished.finish_reason() == v1::FINISH_REASON_STOP && stopping.ignore_eos() &&
        stopping.strings().empty() && stopping.token_ids().empty()) {
      Broken("stopped where nothing stops it");
    }
  }

  const v1::GenerateRequest& request_;
  Answer* answer_;
};

}  // namespace

std::string Answer::Explain() const {
  std::string out = absl::StrCat("status ", status.error_code(), " '", status.error_message(), "'");
  for (const auto& [index, choice] : choices) {
    absl::StrAppend(&out, "\n choice ", index, ": ids ", absl::StrJoin(choice.ids, " "));
  }
  for (const std::string& what : broken) absl::StrAppend(&out, "\n broken: ", what);
  return out;
}

std::string Answer::LastIndex() const {
  const auto found = trailers.find("last-index");
  return found == trailers.end() ? "none" : found->second;
}

CallOptions ActAfter(uint32_t tokens, std::function<bool()> act) {
  return {.keep_going = [tokens, act = std::move(act),
                         acted = false](const v1::GenerateResponse& response) mutable {
    if (!response.has_delta() || acted) return true;
    const v1::Delta& delta = response.delta();
    const uint32_t come = delta.first_token() + static_cast<uint32_t>(delta.token_ids_size());
    acted = come >= tokens && act();
    return true;
  }};
}

Answer Generate(v1::InferenceService::Stub& stub, const v1::GenerateRequest& request,
                const CallOptions& options) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + options.deadline);
  for (const auto& [key, value] : options.headers) context.AddMetadata(key, value);
  Answer answer;
  Checker checker(request, &answer);
  const auto reader = stub.Generate(&context, request);
  for (v1::GenerateResponse response; reader->Read(&response);) {
    checker.On(response);
    if (options.keep_going && !options.keep_going(response)) context.TryCancel();
  }
  answer.status = reader->Finish();
  for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
    answer.trailers.emplace(std::string(key.data(), key.size()),
                            std::string(value.data(), value.size()));
  }
  checker.End();
  return answer;
}

v1::GenerateRequest GreedyRequest(const std::vector<uint32_t>& ids, uint32_t max_tokens) {
  v1::GenerateRequest request;
  request.mutable_token_ids()->mutable_ids()->Add(ids.begin(), ids.end());
  request.mutable_sampling()->set_max_tokens(max_tokens);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

v1::GenerateRequest GreedyText(const std::string& text, uint32_t max_tokens) {
  v1::GenerateRequest request;
  request.set_text(text);
  request.mutable_sampling()->set_max_tokens(max_tokens);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

v1::GenerateRequest LongRequest() {
  v1::GenerateRequest request = GreedyText(std::string(90, 'a'), 400);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

}  // namespace setu::test
