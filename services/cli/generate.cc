// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "services/cli/commands.h"
#include "services/cli/inference_client.h"
#include "services/cli/request_flags.h"

namespace setu::cli {
namespace {

struct GenerateFlags {
  RequestFlags request;
  std::vector<std::string> prompt;
  bool chat = false;
  bool figures = false;
};

// Streams choice by choice: a single choice as it comes, several each under a heading of its own.
class Printer {
 public:
  explicit Printer(bool several) : several_(several), start_(clock_.Now()) {}

  void On(const v1::GenerateResponse& response) {
    if (response.has_delta()) {
      const v1::Delta& delta = response.delta();
      if (first_token_ == TimePoint{} && delta.token_ids_size() > 0) first_token_ = clock_.Now();
      if (several_) {
        texts_.resize(std::max<size_t>(texts_.size(), delta.index() + 1));
        texts_[delta.index()] += delta.text();
      } else {
        std::fputs(delta.text().c_str(), stdout);
        std::fflush(stdout);
      }
    }
    if (response.has_finished()) finished_ = response.finished();
  }

  void End(bool figures) {
    for (size_t i = 0; i < texts_.size(); ++i) {
      std::printf("[%zu]\n%s\n", i, texts_[i].c_str());
    }
    std::puts("");
    if (!figures) return;
    const TimePoint first = first_token_ == TimePoint{} ? clock_.Now() : first_token_;
    std::puts(FiguresLine(finished_, first - start_, clock_.Now() - start_).c_str());
  }

 private:
  SteadyClock clock_;
  bool several_;
  TimePoint start_;
  TimePoint first_token_{};
  std::vector<std::string> texts_;
  v1::Finished finished_;
};

}  // namespace

int RunGenerate(const Arguments& arguments) {
  GenerateFlags flags;
  config::Options options(
      "setu generate", "Continues a text, or answers it as a chat, and streams the answer.",
      {"setu generate \"The capital of France is\" --max-tokens 20 --temperature 0",
       "setu generate --chat --figures \"What is a bridge?\"", "cat prompt.txt | setu generate -"});
  AddRequestFlags(options, &flags.request);
  options.Add("chat", &flags.chat, "send the prompt as a user's message of a chat");
  options.Add("figures", &flags.figures, "print TTFT, tokens/s and KV bytes at the end");
  options.AddPositional("prompt", &flags.prompt, "the text; - reads standard input");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  if (flags.prompt.size() != 1) {
    std::fputs("setu generate: give exactly one prompt, in quotes, or - for standard input\n",
               stderr);
    return 2;
  }
  std::string text = flags.prompt[0];
  if (text == "-") text.assign(std::istreambuf_iterator<char>(std::cin), {});

  v1::GenerateRequest request = RequestFrom(flags.request);
  if (flags.chat) {
    v1::ChatMessage& message = *request.mutable_chat()->add_messages();
    message.set_role("user");
    message.set_content(text);
  } else {
    request.set_text(text);
  }
  InferenceClient client(flags.request.address);
  Printer printer(flags.request.n.value_or(1) > 1);
  const absl::Status end =
      client.Generate(request, flags.request.deadline,
                      [&](const v1::GenerateResponse& response) { printer.On(response); });
  if (!end.ok()) {
    std::fprintf(stderr, "\nsetu generate: %s\n", end.ToString().c_str());
    return 1;
  }
  printer.End(flags.figures);
  return 0;
}

}  // namespace setu::cli
