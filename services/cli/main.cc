// SPDX-License-Identifier: Apache-2.0
// `setu COMMAND [flags]`.
#include <cstdio>
#include <string_view>

#include "common/base/mapped_pages.h"
#include "services/cli/commands.h"

namespace {

struct Command {
  const char* name;
  int (*run)(const setu::cli::Arguments&);
  const char* purpose;
};

constexpr Command kCommands[] = {
    {"up", setu::cli::RunUp, "start a cluster on this machine"},
    {"generate", setu::cli::RunGenerate, "continue a text or answer a question"},
    {"chat", setu::cli::RunChat, "talk with the model, turn by turn"},
    {"bench", setu::cli::RunBench, "measure a cluster, or a model in this process"},
    {"top", setu::cli::RunTop, "watch which limit holds each worker of a cluster"},
    {"doctor", setu::cli::RunDoctor, "say what this machine can do with a model"},
    {"model", setu::cli::RunModel, "look into a model file, or make one"},
    {"token", setu::cli::RunToken, "make a bearer token for a client"},
};

int Usage(FILE* to) {
  std::fputs("setu: large language models with separate prefill and decode workers\n\n", to);
  for (const Command& command : kCommands) {
    std::fprintf(to, "  setu %-9s %s\n", command.name, command.purpose);
  }
  std::fputs(
      "\nExamples:\n"
      "  setu up model.gguf\n"
      "  setu generate --chat \"What is a bridge?\"\n"
      "\nEach command explains itself: setu COMMAND --help\n",
      to);
  return to == stdout ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  setu::EndOnUnreadablePages();
  if (argc < 2) return Usage(stderr);
  const std::string_view word = argv[1];
  if (word == "--help" || word == "-h" || word == "help") return Usage(stdout);
  if (word == "--version" || word == "version") return std::puts("setu " SETU_VERSION), 0;
  for (const Command& command : kCommands) {
    if (word == command.name) {
      return command.run(setu::cli::Arguments(argv + 2, argv + argc));
    }
  }
  std::fprintf(stderr, "setu: unknown command '%s'\n\n", argv[1]);
  return Usage(stderr);
}
