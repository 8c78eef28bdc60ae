// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "services/cli/commands.h"
#include "services/cli/load/comparison.h"

namespace setu::cli {
namespace {

absl::StatusOr<ComparedSide> ReadFirstSide(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read '", path, "'"));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  SETU_ASSIGN_OR_RETURN(std::vector<ComparedSide> sides, ParseReport(path, text));
  return std::move(sides[0]);
}

}  // namespace

int RunBenchCompare(const Arguments& arguments) {
  std::vector<std::string> files;
  config::Options options("setu bench compare",
                          "Compares two reports of setu bench: ratios, and what is noise.",
                          {"setu bench compare before.json after.json"});
  options.AddPositional("reports", &files,
                        "two files that --json wrote; of several sides, the first counts");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  if (files.size() != 2) {
    std::fprintf(stderr, "setu bench compare: it takes two reports, not %zu\n", files.size());
    return 2;
  }
  const auto base = ReadFirstSide(files[0]), other = ReadFirstSide(files[1]);
  for (const auto* side : {&base, &other}) {
    if (side->ok()) continue;
    std::fprintf(stderr, "setu bench compare: %s\n", std::string(side->status().message()).c_str());
    return 1;
  }
  std::fputs(ComparisonText(*base, *other).c_str(), stdout);
  return 0;
}

}  // namespace setu::cli
