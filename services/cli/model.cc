// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "common/model/gguf.h"
#include "common/model/inspect.h"
#include "services/cli/commands.h"

namespace setu::cli {

int RunModel(const Arguments& arguments) {
  std::vector<std::string> words;
  config::Options options("setu model", "Looks into a model file without loading it.",
                          {"setu model inspect model.gguf"});
  options.AddPositional("inspect FILE", &words, "what to do, and the GGUF file");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  if (words.size() != 2 || words[0] != "inspect") {
    std::fputs("usage: setu model inspect FILE\n", stderr);
    return 2;
  }
  const auto file = model::GgufFile::Open(words[1]);
  if (!file.ok()) {
    std::fprintf(stderr, "setu model: %s\n", std::string(file.status().message()).c_str());
    return 1;
  }
  std::fputs(model::Inspect(**file).c_str(), stdout);
  return 0;
}

}  // namespace setu::cli
