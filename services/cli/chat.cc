// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

#include "services/cli/commands.h"
#include "services/cli/inference_client.h"
#include "services/cli/request_flags.h"

namespace setu::cli {
namespace {

v1::ChatMessage Message(std::string role, std::string content) {
  v1::ChatMessage message;
  message.set_role(std::move(role));
  message.set_content(std::move(content));
  return message;
}

// One turn: streams the answer, prints its figures, and returns its text. Of an answer that broke
// off, what came stays on the screen only.
absl::StatusOr<std::string> Turn(InferenceClient& client, const v1::GenerateRequest& request,
                                 Duration deadline) {
  SteadyClock clock;
  const TimePoint start = clock.Now();
  std::optional<TimePoint> first;
  std::string answer;
  v1::Finished finished;
  const absl::Status end =
      client.Generate(request, deadline, [&](const v1::GenerateResponse& response) {
        if (response.has_delta()) {
          if (!first) first = clock.Now();
          answer += response.delta().text();
          std::fputs(response.delta().text().c_str(), stdout);
          std::fflush(stdout);
        }
        if (response.has_finished()) finished = response.finished();
      });
  if (first) std::puts("");
  std::fflush(stdout);  // before what is said of it on stderr
  if (!end.ok()) return end;
  const TimePoint now = clock.Now();
  std::fprintf(stderr, "(%s)\n",
               FiguresLine(finished, first.value_or(now) - start, now - start).c_str());
  return answer;
}

}  // namespace

int RunChat(const Arguments& arguments) {
  RequestFlags flags;
  flags.temperature = 0.3;  // a conversation wants to be livelier than greedy, and to the point
  std::optional<std::string> system;
  config::Options options("setu chat",
                          "Talks with the served model, turn by turn, until end of input.",
                          {"setu chat", "setu chat --system \"Answer in one sentence.\"",
                           "echo \"Name a bridge.\" | setu chat --max-tokens 40"});
  AddRequestFlags(options, &flags);
  options.Add("system", &system, "a system message before the first turn");
  if (const auto code = ParseOrExit(options, arguments)) return *code;

  InferenceClient client(flags.address);
  v1::GenerateRequest request = RequestFrom(flags);
  v1::Chat& chat = *request.mutable_chat();
  if (system) *chat.add_messages() = Message("system", *system);
  bool all_answered = true;
  for (std::string line;
       std::fputs("> ", stdout), std::fflush(stdout), std::getline(std::cin, line);) {
    if (line.empty()) continue;
    *chat.add_messages() = Message("user", line);
    const absl::StatusOr<std::string> answer = Turn(client, request, flags.deadline);
    if (answer.ok()) {
      *chat.add_messages() = Message("assistant", *answer);
    } else {
      // The turn is taken back, so that the next one starts from what was really said.
      chat.mutable_messages()->RemoveLast();
      all_answered = false;
      std::fprintf(stderr, "setu chat: %s\n", answer.status().ToString().c_str());
    }
  }
  std::puts("");
  return all_answered ? 0 : 1;
}

}  // namespace setu::cli
