// SPDX-License-Identifier: Apache-2.0
// However tokens arrive (one by one, in runs, with repeats), an answer delivers the same ids and
// the same text, up to the stop string that a search of the whole text finds.
#include "services/router/answer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "services/router/validator.h"
#include "tests/fuzz/input.h"
#include "tests/services/router/byte_tokenizer.h"

namespace setu::router {
namespace {

constexpr size_t kMostTokens = 128;

struct Told {
  std::string text;
  std::vector<uint32_t> ids;
  v1::Finished finished;
};

ValidRequest Request(const Validator& validator, fuzz::Input& input) {
  v1::GenerateRequest request;
  request.set_text("p");
  request.mutable_sampling()->set_max_tokens(kMostTokens);
  request.mutable_sampling()->set_min_tokens(static_cast<uint32_t>(input.Below(4)));
  for (size_t left = input.Below(4); left > 0; --left) {
    std::string stop(input.Text(1 + input.Below(8)));
    if (stop.empty() || ValidUtf8Prefix(stop) != stop.size()) stop = "ab";
    request.mutable_stopping()->add_strings(stop);
  }
  if (input.Below(2) == 1) request.mutable_output()->set_logprobs(1);
  auto valid = validator.Validate(request.SerializeAsString(), {.context_length = 4096});
  SETU_CHECK(valid.ok(), "a request within the limits is taken");
  return *std::move(valid);
}

// `delta` goes on where `told` ends.
void Add(const std::optional<v1::Delta>& delta, bool logprobs, Told& told) {
  if (!delta) return;
  SETU_CHECK(delta->first_token() == told.ids.size(), "deltas have neither gap nor repeat");
  SETU_CHECK(ValidUtf8Prefix(delta->text()) == delta->text().size(), "text is UTF-8");
  SETU_CHECK(delta->logprobs_size() == (logprobs ? delta->token_ids_size() : 0),
             "each id that goes out has its logprobs with it");
  told.text += delta->text();
  told.ids.insert(told.ids.end(), delta->token_ids().begin(), delta->token_ids().end());
}

// Pushes runs of up to `most`, each with up to `most` tokens that were pushed before.
Told Tell(const ByteTokenizer& tokenizer, const ValidRequest& request,
          const std::vector<engine::SampledToken>& tokens, size_t most) {
  Answer answer(tokenizer, request, /*choice=*/0);
  Told told;
  for (size_t at = 0; at < tokens.size() && !answer.stopped(); at += most) {
    const size_t from = at - std::min(at, most - 1);
    const size_t end = std::min(tokens.size(), at + most);
    Add(answer.Push(static_cast<int32_t>(from), {tokens.data() + from, end - from}),
        request.sampling().want_logprobs, told);
    SETU_CHECK(answer.delivered() == static_cast<int32_t>(told.ids.size()), "delivered is counted");
  }
  auto [last, finished] = answer.Finish(engine::EndReason::kMaxTokens);
  Add(last, request.sampling().want_logprobs, told);
  told.finished = std::move(finished);
  SETU_CHECK(told.ids.size() == answer.ids().size(), "in the end every id is out");
  return told;
}

// A stop string is cut off where the text completes one for the first time, at min_tokens or later.
void CheckStop(const ValidRequest& request, const Told& told) {
  if (!told.finished.stop_match().empty()) {
    SETU_CHECK(std::ranges::count(request.stop_strings(), told.finished.stop_match()) > 0,
               "what stopped it is a stop string");
    return;
  }
  if (request.sampling().min_tokens > 1) return;
  for (const std::string& stop : request.stop_strings()) {
    SETU_CHECK(told.text.find(stop) == std::string::npos, "no stop string is passed over");
  }
}

void CheckAnswer(fuzz::Input input) {
  std::vector<std::string> pieces;
  for (size_t left = input.Below(8); left > 0; --left) {
    pieces.emplace_back(input.Text(input.Below(8)));
  }
  const ByteTokenizer tokenizer(/*adds_begin=*/true, pieces);
  const Validator validator({.name = "bytes", .tokenizer = &tokenizer}, [] { return 1; });
  const ValidRequest request = Request(validator, input);
  const size_t most = 1 + input.Below(7);
  std::vector<engine::SampledToken> tokens;
  while (!input.empty() && tokens.size() < kMostTokens) {
    // A byte as it is, or an id from the upper end: pieces, ends and what begins messages.
    int32_t id = input.Byte();
    if (id >= 0xF5) id = tokenizer.vocabulary() - 1 - static_cast<int32_t>(input.Below(12));
    const auto& ends = tokenizer.end_ids();
    tokens.push_back({.id = id, .logprob = -1, .top = {{id, -1}}});
    if (std::ranges::count(ends, id) > 0) break;
  }
  const Told told = Tell(tokenizer, request, tokens, 1);
  const Told in_runs = Tell(tokenizer, request, tokens, most);
  SETU_CHECK(told.text == in_runs.text && told.ids == in_runs.ids, "runs change nothing");
  SETU_CHECK(told.finished.SerializeAsString() == in_runs.finished.SerializeAsString(),
             "runs change no end");
  CheckStop(request, told);
}

}  // namespace
}  // namespace setu::router

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setu::router::CheckAnswer({data, size});
  return 0;
}
