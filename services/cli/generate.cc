// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "services/cli/commands.h"
#include "services/cli/inference_client.h"
#include "services/cli/logprob_lines.h"
#include "services/cli/request_flags.h"
#include "services/cli/stream_figures.h"
#include "services/cli/waiting_line.h"

namespace setu::cli {
namespace {

struct GenerateFlags {
  RequestFlags request;
  std::optional<int64_t> n, logprobs;
  std::vector<std::string> prompt;
  bool chat = false;
  bool figures = false;
};

struct Choice {
  std::string text;
  v1::Delta tokens;  // ids and logprobs of all deltas; kept only where logprobs were asked for
};

// Prints the text of a single choice as it comes; all else comes at the end.
class Answer {
 public:
  explicit Answer(const GenerateFlags& flags)
      : flags_(flags), choices_(flags.n.value_or(1)), figures_(clock_.Now()) {}

  void On(const v1::GenerateResponse& response) {
    began_ = true;
    figures_.On(response, clock_.Now());
    if (!response.has_delta() || response.delta().index() >= choices_.size()) return;
    waiting_.End();
    const v1::Delta& delta = response.delta();
    Choice& choice = choices_[delta.index()];
    if (flags_.logprobs) choice.tokens.MergeFrom(delta);
    if (choices_.size() > 1) {
      choice.text += delta.text();
    } else {
      std::fputs(delta.text().c_str(), stdout);
      std::fflush(stdout);
    }
  }

  // Called when the stream has ended.
  void End() { waiting_.End(); }
  // After the stream, however it ended: what came is shown. `texts` gives the texts of `ids`.
  void Show(const std::map<uint32_t, std::string>& texts) const {
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (choices_.size() > 1) std::printf("[%zu]\n%s", i, choices_[i].text.c_str());
      std::puts("");
      if (flags_.logprobs) std::fputs(LogprobLines(choices_[i].tokens, texts).c_str(), stdout);
    }
  }

  std::set<uint32_t> ids() const {
    std::set<uint32_t> ids;
    for (const Choice& choice : choices_) ids.merge(IdsOf(choice.tokens));
    return ids;
  }
  bool began() const { return began_; }
  std::string figures() const { return figures_.Line(); }

 private:
  const GenerateFlags& flags_;
  const SteadyClock clock_;
  std::vector<Choice> choices_;
  StreamFigures figures_;
  WaitingLine waiting_{stderr};
  bool began_ = false;
};

absl::StatusOr<std::string> ReadInput() {
  constexpr size_t kMostBytes = 4 << 20;  // a router takes no larger request
  std::string text(kMostBytes + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::cin.gcount()));
  if (text.size() <= kMostBytes) return text;
  return absl::InvalidArgumentError(absl::StrCat("standard input has over ", kMostBytes,
                                                 " bytes, the most of a request; give less"));
}

absl::StatusOr<v1::GenerateRequest> RequestOf(const GenerateFlags& flags) {
  v1::GenerateRequest request = RequestFrom(flags.request);
  if (flags.n) request.mutable_sampling()->set_n(static_cast<uint32_t>(*flags.n));
  if (flags.logprobs) {
    request.mutable_output()->set_logprobs(static_cast<uint32_t>(*flags.logprobs));
  }
  std::string text = flags.prompt[0];
  if (text == "-") {
    SETU_ASSIGN_OR_RETURN(text, ReadInput());
  }
  if (flags.chat) {
    v1::ChatMessage& message = *request.mutable_chat()->add_messages();
    message.set_role("user");
    message.set_content(std::move(text));
  } else {
    request.set_text(std::move(text));
  }
  return request;
}

absl::Status Generate(const GenerateFlags& flags) {
  SETU_ASSIGN_OR_RETURN(const v1::GenerateRequest request, RequestOf(flags));
  const Duration deadline = flags.request.deadline;
  SETU_ASSIGN_OR_RETURN(const RouterTarget target, flags.request.router.Read());
  InferenceClient client(target);
  Answer answer(flags);
  absl::Status status =
      client.Generate(request, deadline, [&answer](const auto& response) { answer.On(response); });
  answer.End();
  if (!answer.began()) return status;
  std::map<uint32_t, std::string> texts;
  for (uint32_t id : answer.ids()) {
    if (!status.ok()) break;
    const absl::StatusOr<std::string> text = client.Detokenize({id}, deadline);
    status.Update(text.status());
    texts[id] = text.value_or("");
  }
  answer.Show(texts);
  std::fflush(stdout);  // before what is said of it on stderr
  if (status.ok() && flags.figures) std::fprintf(stderr, "%s\n", answer.figures().c_str());
  return status;
}

}  // namespace

int RunGenerate(const Arguments& arguments) {
  GenerateFlags flags;
  config::Options options(
      "setu generate",
      "Continues a text, or answers it as a chat; what no option says is up to the server.",
      {"setu generate \"The capital of France is\" --max-tokens 20 --temperature 0",
       "setu generate --chat --temperature 0 --max-tokens 100 --figures \"What is a bridge?\"",
       "setu generate \"One, two,\" --max-tokens 5 --logprobs 3",
       "setu generate \"A bridge\" --n 2 --seed 7 --max-tokens 40 --stop End --stop $'\\n\\n'",
       "cat prompt.txt | setu generate -"});
  AddRequestFlags(options, &flags.request);
  options.Add("n", &flags.n, "number of choices").Range(1, 16);
  options.Add("logprobs", &flags.logprobs, "print each token's logprob and so many likeliest ids")
      .Range(0, 20);
  options.Add("chat", &flags.chat, "send the prompt as a user's message of a chat");
  options.Add("figures", &flags.figures, "say TTFT, tokens/s and KV bytes at the end, on stderr");
  options.AddPositional("prompt", &flags.prompt, "the text; - reads standard input");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  if (flags.prompt.size() != 1) {
    std::fputs("setu generate: give exactly one prompt, in quotes, or - for standard input\n",
               stderr);
    return 2;
  }
  const absl::Status status = Generate(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "setu generate: %s\n", InFlags(status.ToString()).c_str());
  return 1;
}

}  // namespace setu::cli
