// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/gguf.h"
#include "common/model/inspect.h"
#include "services/cli/commands.h"

namespace setu::cli {

absl::StatusOr<std::unique_ptr<model::GgufFile>> OpenModel(const std::string& path) {
  auto file = model::GgufFile::Open(path);
  if (!absl::IsNotFound(file.status())) return file;
  return absl::NotFoundError(
      absl::StrCat(path,
                   ": No such file or directory\nGive the path of a GGUF file; "
                   "deploy/local/fetch_model.sh fetches the default model and prints its path"));
}

namespace {

int RunModelInspect(const Arguments& arguments) {
  std::vector<std::string> words;
  config::Options options("setu model inspect",
                          "Shows what is in a model file, without loading it.",
                          {"setu model inspect model.gguf"});
  options.AddPositional("file", &words, "the GGUF file");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  if (words.size() != 1) {
    std::fputs("setu model: give one file: setu model inspect FILE\n", stderr);
    return 2;
  }
  const auto file = OpenModel(words[0]);
  if (!file.ok()) {
    std::fprintf(stderr, "setu model: %s\n", std::string(file.status().message()).c_str());
    return 1;
  }
  std::fputs(model::Inspect(**file).c_str(), stdout);
  return 0;
}

int Usage(FILE* to) {
  std::fputs(
      "setu model: look into a model file (inspect), or make one (synth)\n"
      "\nExamples:\n"
      "  setu model inspect model.gguf\n"
      "  setu model synth --out m1b.gguf --type q4_k_m\n"
      "\nEach explains itself: setu model synth --help\n",
      to);
  return to == stdout ? 0 : 2;
}

}  // namespace

int RunModel(const Arguments& arguments) {
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "--help" || word == "-h") return Usage(stdout);
  if (word != "inspect" && word != "synth") return Usage(stderr);
  const Arguments rest(arguments.begin() + 1, arguments.end());
  return word == "inspect" ? RunModelInspect(rest) : RunModelSynth(rest);
}

}  // namespace setu::cli
