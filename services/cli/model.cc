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

int RunModel(const Arguments& arguments) {
  std::vector<std::string> words;
  config::Options options("setu model inspect",
                          "Shows what is in a model file, without loading it.",
                          {"setu model inspect model.gguf"});
  options.AddPositional("file", &words, "the GGUF file");
  const bool named = !arguments.empty() && arguments[0] == "inspect";
  if (const auto code =
          ParseOrExit(options, {arguments.begin() + (named ? 1 : 0), arguments.end()})) {
    return *code;
  }
  if (!named || words.size() != 1) {
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

}  // namespace setu::cli
