// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "services/cli/bench_run.h"
#include "services/cli/commands.h"
#include "services/cli/interrupts.h"
#include "services/cli/load/report.h"
#include "services/cli/load/sides.h"

namespace setu::cli {
namespace {

// What is of the whole run, and of no workload.
struct BenchFlags {
  SideFlags sides;
  RunLimits limits;
  std::optional<std::string> json, html;

  bool operator==(const BenchFlags&) const = default;
};

std::unique_ptr<config::Options> MakeOptions(BenchFlags* flags, WorkloadFlags* workload) {
  auto made = std::make_unique<config::Options>(
      "setu bench", "Loads a running cluster and reports what its clients see.",
      std::vector<std::string>{
          "setu bench --concurrency 16 --requests 200",
          "setu bench --rate 5 --duration 60s --ttft-target-ms 500 --json a.json --html a.html",
          "setu bench tests/bench/workloads/streams.yaml \\\n"
          "      --beside tests/bench/workloads/long_prompts.yaml --rounds 3",
          "setu bench compare a.json b.json",
          "setu bench engine --help    # of a model in this process, no cluster"});
  config::Options& options = *made;
  options.AddPositional("workload", &flags->sides.files,
                        "files with the options of a load, name: value; all of them run at once, "
                        "and an option on the command line is for each");
  options.AddAddress("address", &flags->sides.address, "the router, HOST:PORT");
  options.AddRepeated("beside", &flags->sides.beside,
                      "compare with what it is beside this workload; repeat it for several");
  options.AddRepeated("versus", &flags->sides.versus,
                      "compare with this workload; repeat it for several");
  options.AddAddresses("address-versus", &flags->sides.address_versus,
                       "compare with these routers");
  options
      .Add("capacity", &flags->sides.capacity,
           "requests per second, for --times-capacity; absent: measured first")
      .Range(1e-6, 1e6);
  options.Add("rounds", &flags->limits.rounds, "each side so often, in turn").Range(1, 1000);
  options
      .Add("max-open", &flags->limits.most_open,
           "streams of open arrivals; those beyond are NOT_SENT")
      .Range(1, 100'000);
  options.Add("seed", &flags->limits.seed, "of arrivals, lengths and prompts");
  options.Add("json", &flags->json, "also write the report to this file");
  options.Add("html", &flags->html, "also write it as a page with plots");
  AddWorkloadFlags(options, workload);
  return made;
}

// The file's options, and over them those of the command line.
absl::StatusOr<Workload> ReadWorkload(const Arguments& arguments, const BenchFlags& run,
                                      const std::string& file) {
  const std::string config = absl::StrCat("--config=", file);
  std::vector<const char*> argv = {"setu", config.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  BenchFlags of_file;
  WorkloadFlags workload;
  const auto options = MakeOptions(&of_file, &workload);
  NullLogger logger;
  SETU_RETURN_IF_ERROR(
      options
          ->Parse(static_cast<int>(argv.size()), argv.data(), config::ProcessEnvironment(), logger)
          .status());
  if (of_file != run) {
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        " sets an option of the whole run; a workload's are those behind --seed, --json and "
        "--html in --help"));
  }
  auto made = MakeWorkload(std::filesystem::path(file).stem(), workload);
  if (made.ok()) return made;
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", made.status().message()));
}

absl::StatusOr<std::vector<Side>> SidesOf(const Arguments& arguments, const BenchFlags& flags,
                                          const WorkloadFlags& workload) {
  const bool configured = std::any_of(arguments.begin(), arguments.end(), [](auto& argument) {
    return absl::StartsWith(argument, "--config");
  });
  return MakeSides(flags.sides, [&](const std::string& file) -> absl::StatusOr<Workload> {
    if (file.empty()) return MakeWorkload("load", workload);
    if (configured) return absl::InvalidArgumentError("give --config or workloads, not both");
    return ReadWorkload(arguments, flags, file);
  });
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "setu bench: %s\n", std::string(status.message()).c_str());
  return code;
}

// A file that is opened before the run, which may take long, and written after it.
class Output {
 public:
  Output(const char* flag, const std::optional<std::string>& path) : flag_(flag), path_(path) {
    if (path_) file_.open(*path_);
  }
  absl::Status Check() {
    if (!path_ || file_) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "cannot write ", flag_, " '", *path_, "': ", strerror(errno), "; name a file that can be"));
  }
  absl::Status Write(const std::string& text) {
    if (path_) file_ << text << std::flush;
    return Check();
  }

 private:
  const char* const flag_;
  const std::optional<std::string> path_;
  std::ofstream file_;
};

}  // namespace

int RunBench(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "engine") {
    return RunBenchEngine({arguments.begin() + 1, arguments.end()});
  }
  if (!arguments.empty() && arguments[0] == "compare") {
    return RunBenchCompare({arguments.begin() + 1, arguments.end()});
  }
  BenchFlags flags;
  WorkloadFlags workload;
  const auto options = MakeOptions(&flags, &workload);
  if (const auto code = ParseOrExit(*options, arguments)) return *code;
  auto sides = SidesOf(arguments, flags, workload);
  if (!sides.ok()) return Fail(sides.status(), 2);

  const InterruptMask held(SIG_BLOCK);  // before any thread starts
  const Interrupt interrupt;
  Output json("--json", flags.json), html("--html", flags.html);
  for (Output* output : {&json, &html}) {
    if (const absl::Status status = output->Check(); !status.ok()) return Fail(status, 1);
  }
  flags.limits.shows_progress = isatty(STDERR_FILENO) == 1;
  const auto report = RunSides(*std::move(sides), flags.limits, interrupt.token());
  if (!report.ok()) return Fail(report.status(), 1);
  std::fputs(report->Text().c_str(), stdout);
  for (const absl::Status& status :
       {json.Write(report->Json()), html.Write(flags.html ? HtmlPage(*report) : "")}) {
    if (!status.ok()) return Fail(status, 1);
  }
  if (interrupt.came()) return 128 + SIGINT;
  return report->ok() ? 0 : 1;
}

}  // namespace setu::cli
