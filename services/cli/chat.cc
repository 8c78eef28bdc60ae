// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/cli/commands.h"
#include "services/cli/inference_client.h"
#include "services/cli/interrupts.h"
#include "services/cli/request_flags.h"
#include "services/cli/stream_figures.h"
#include "services/cli/waiting_line.h"

namespace setu::cli {
namespace {

// Questions and answers by turns, behind a system message where there is one.
class Conversation {
 public:
  Conversation(v1::Chat* chat, const std::optional<std::string>& system) : chat_(*chat) {
    if (system) Add("system", *system);
    kept_ = chat_.messages_size();
  }

  void Add(std::string role, std::string content) {
    v1::ChatMessage& message = *chat_.add_messages();
    message.set_role(std::move(role));
    message.set_content(std::move(content));
  }
  void Reset() { chat_.mutable_messages()->DeleteSubrange(kept_, chat_.messages_size() - kept_); }
  // The last question, which got no answer.
  void TakeBack() { chat_.mutable_messages()->RemoveLast(); }
  // Forgets the older half of the turns before the last question, so that there is room for some
  // more; says how many these are.
  int ForgetOldest() {
    const int forgotten = ((chat_.messages_size() - kept_) / 2 + 1) / 2;
    chat_.mutable_messages()->DeleteSubrange(kept_, 2 * forgotten);
    return forgotten;
  }
  const v1::Chat& messages() const { return chat_; }
  void Restore(v1::Chat messages) { chat_ = std::move(messages); }

 private:
  v1::Chat& chat_;
  int kept_ = 0;  // the system message
};

class Talk {
 public:
  Talk(const RequestFlags& flags, const RouterTarget& target,
       const std::optional<std::string>& system)
      : flags_(flags),
        client_(target),
        request_(RequestFrom(flags)),
        conversation_(request_.mutable_chat(), system) {}

  absl::Status RouterAnswers() {
    return client_.ListModels(std::min<Duration>(flags_.deadline, std::chrono::seconds(10)))
        .status();
  }

  void Reset() { conversation_.Reset(); }

  // Asks and prints. What was refused or broke off is taken back, so that the next question starts
  // from what was really said; an answer that Ctrl-C ended was said as far as it came.
  absl::Status Ask(const std::string& question) {
    conversation_.Add("user", question);
    const absl::StatusOr<std::string> answer = FittingTurn();
    if (answer.ok() && !answer->empty()) {
      conversation_.Add("assistant", *answer);
    } else {
      conversation_.TakeBack();
    }
    return answer.status();
  }

 private:
  // Forgets old turns for as long as the router refuses: what was taken in the turns before is
  // refused now only because there is too much of it.
  absl::StatusOr<std::string> FittingTurn() {
    absl::StatusOr<std::string> answer = Turn("");
    if (!absl::IsInvalidArgument(answer.status())) return answer;
    v1::Chat all = conversation_.messages();
    int forgotten = 0;
    while (absl::IsInvalidArgument(answer.status())) {
      const int more = conversation_.ForgetOldest();
      if (more == 0) {
        conversation_.Restore(std::move(all));
        return answer;
      }
      forgotten += more;
      answer = Turn(absl::StrCat("(all of it no longer fits the model's context: the oldest ",
                                 forgotten, " turn(s) are forgotten)\n"));
    }
    return answer;
  }

  // One request: streams the answer, prints its figures, and returns its text. `notice` is said
  // once the router takes the request.
  absl::StatusOr<std::string> Turn(const std::string& notice) {
    const SteadyClock clock;
    StreamFigures figures(clock.Now());
    const Interrupt interrupt;
    WaitingLine waiting(stderr);
    std::string answer;
    v1::Finished finished;
    bool taken = false;
    const auto on_response = [&](const v1::GenerateResponse& response) {
      if (!std::exchange(taken, true)) std::fputs(notice.c_str(), stderr);
      figures.On(response, clock.Now());
      if (response.has_finished()) finished = response.finished();
      if (!response.has_delta()) return;
      waiting.End();
      answer += response.delta().text();
      std::fputs(response.delta().text().c_str(), stdout);
      std::fflush(stdout);
    };
    const absl::Status end =
        client_.Generate(request_, flags_.deadline, on_response, interrupt.token());
    waiting.End();
    if (!answer.empty()) std::puts("");
    std::fflush(stdout);  // before what is said of it on stderr
    if (interrupt.came()) {
      std::fputs("(ended by Ctrl-C)\n", stderr);
      return answer;
    }
    if (!end.ok()) return end;
    std::fprintf(stderr, "(%s)\n", figures.Line().c_str());
    if (finished.finish_reason() == v1::FINISH_REASON_LENGTH && !flags_.max_tokens) {
      std::fputs("(cut off: the model's context is full)\n", stderr);
    }
    return answer;
  }

  const RequestFlags& flags_;
  InferenceClient client_;
  v1::GenerateRequest request_;
  Conversation conversation_;
};

bool ReadLine(std::string* line) {
  const InterruptMask leaves(SIG_UNBLOCK);  // Ctrl-C at the prompt ends the program
  std::fputs("> ", stdout);
  std::fflush(stdout);
  return static_cast<bool>(std::getline(std::cin, *line));
}

// Until the end of input or /exit: whether every question was answered.
bool Converse(Talk& talk) {
  bool all_answered = true;
  for (std::string line; ReadLine(&line) && line != "/exit";) {
    if (line.empty()) continue;
    if (line == "/reset") {
      talk.Reset();
      std::fputs("(the conversation is forgotten)\n", stderr);
    } else if (line[0] == '/') {
      std::fprintf(stderr,
                   "%s is no command; there are /reset and /exit (a text that begins with / needs "
                   "a space before it)\n",
                   line.c_str());
    } else if (const absl::Status status = talk.Ask(line); !status.ok()) {
      all_answered = false;
      std::fprintf(stderr, "setu chat: %s\n", InFlags(status.ToString()).c_str());
    }
  }
  return all_answered;
}

int Failed(const absl::Status& why) {
  std::fprintf(stderr, "setu chat: %s\n", why.ToString().c_str());
  return 1;
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

  const InterruptMask held(SIG_BLOCK);  // Ctrl-C ends an answer
  const absl::StatusOr<RouterTarget> target = flags.router.Read();
  if (!target.ok()) return Failed(target.status());
  Talk talk(flags, *target, system);
  if (const absl::Status status = talk.RouterAnswers(); !status.ok()) return Failed(status);
  std::fputs("/reset forgets the conversation, Ctrl-C ends an answer, Ctrl-D leaves\n", stderr);
  const bool all_answered = Converse(talk);
  std::puts("");
  return all_answered ? 0 : 1;
}

}  // namespace setu::cli
