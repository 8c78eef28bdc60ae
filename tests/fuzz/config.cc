// SPDX-License-Identifier: Apache-2.0
// Options out of flags, variables and a file: every one within its range, or an error that names
// the place. An input is lines: those that begin with - are arguments (cut at spaces), those with
// SETU_ variables, and all others the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/config/options.h"
#include "tests/fuzz/memory_file.h"

namespace setu::config {
namespace {

struct Targets {
  std::string model;
  std::string isa = "auto";
  std::optional<std::string> name;
  std::vector<std::string> list, texts, addresses, more;
  std::string listen = "127.0.0.1:0", address = "127.0.0.1:1";
  int32_t chunk = 256;
  int64_t queue = 10;
  double share = 0.5;
  std::optional<int64_t> most;
  std::optional<double> target;
  bool on = false;
  Duration grace = std::chrono::seconds(60);
  int64_t memory = int64_t{4} << 30;
};

void Declare(Options& options, Targets& t) {
  options.Add("model", &t.model, "file").Required();
  options.Add("isa", &t.isa, "set").OneOf({"auto", "avx2"});
  options.Add("name", &t.name, "name");
  options.Add("list", &t.list, "a,b");
  options.AddRepeated("text", &t.texts, "text");
  options.AddAddresses("addresses", &t.addresses, "peers");
  options.AddListen("listen", &t.listen, "place");
  options.AddAddress("address", &t.address, "peer");
  options.Add("chunk", &t.chunk, "tokens").Range(16, 8192);
  options.Add("queue", &t.queue, "prompts").Range(1, 1e6);
  options.Add("share", &t.share, "share").Range(0, 1);
  options.Add("most", &t.most, "most");
  options.Add("target", &t.target, "target").Range(0.5, 1e9);
  options.Add("on", &t.on, "switch");
  options.Add("grace", &t.grace, "time").Range(0, 3600);
  options.AddBytes("memory", &t.memory, "memory").Range(1 << 20, 1e15);
  options.AddPositional("more", &t.more, "more");
}

void CheckRanges(const Targets& t) {
  SETU_CHECK(!t.model.empty(), "what is required is there");
  SETU_CHECK(t.isa == "auto" || t.isa == "avx2", "a choice is one of those named");
  SETU_CHECK(t.chunk >= 16 && t.chunk <= 8192, "chunk is in its range");
  SETU_CHECK(t.queue >= 1 && t.queue <= 1'000'000, "queue is in its range");
  SETU_CHECK(t.share >= 0 && t.share <= 1, "share is in its range");
  SETU_CHECK(!t.target || (*t.target >= 0.5 && *t.target <= 1e9), "target is in its range");
  SETU_CHECK(t.grace >= Duration(0) && t.grace <= std::chrono::hours(1), "grace is in its range");
  SETU_CHECK(t.memory >= 1 << 20 && t.memory <= 1'000'000'000'000'000, "memory is in its range");
  for (const std::string& part : t.list) SETU_CHECK(!part.empty(), "a list has no empty parts");
}

// An error tells where to look: the file and its line, a variable, or a flag.
void CheckError(const absl::Status& error, const std::vector<std::string>& arguments,
                const std::vector<std::string>& variables, const std::string& path) {
  SETU_CHECK(error.code() == absl::StatusCode::kInvalidArgument, "wrong options are known so");
  const absl::string_view message = error.message();
  const auto names = [&](absl::string_view text) {
    const absl::string_view name = text.substr(0, text.find('='));
    return !name.empty() && absl::StrContains(message, name);
  };
  SETU_CHECK(absl::StrContains(message, path) || absl::StartsWith(message, "--model is required") ||
                 std::ranges::any_of(arguments, names) || std::ranges::any_of(variables, names),
             "an error names its place");
}

void CheckOptions(std::string_view input) {
  std::vector<std::string> arguments = {"program"};
  std::vector<std::string> variables;
  std::string text;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(input.data(), input.size()), '\n')) {
    if (absl::StartsWith(line, "SETU_")) {
      if (!absl::StartsWith(line, "SETU_CONFIG")) variables.emplace_back(line);
    } else if (absl::StartsWith(line, "-") && !absl::StartsWith(line, "- ") && line != "---") {
      for (absl::string_view word : absl::StrSplit(line, ' ')) {
        word = word.substr(0, word.find('\0'));  // as from a shell: an argument ends there
        const bool ours = absl::StartsWith(word, "--config") || word == "-h" || word == "--help";
        if (!ours) arguments.emplace_back(word);
      }
    } else {
      absl::StrAppend(&text, line, "\n");
    }
  }
  const fuzz::MemoryFile file(text);
  arguments.insert(arguments.begin() + 1, absl::StrCat("--config=", file.path()));
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  Targets targets;
  Options options("program", "Does nothing.", {"program --model m"});
  Declare(options, targets);
  NullLogger logger;
  const auto outcome = options.Parse(static_cast<int>(argv.size()), argv.data(), variables, logger);
  if (outcome.ok()) return CheckRanges(targets);
  arguments.erase(arguments.begin(), arguments.begin() + 2);
  CheckError(outcome.status(), arguments, variables, file.path());
}

}  // namespace
}  // namespace setu::config

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setu::config::CheckOptions({reinterpret_cast<const char*>(data), size});
  return 0;
}
