// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/engine/model_runner.h"
#include "common/logging/logger.h"
#include "common/roofline/step_model.h"
#include "common/roofline/timing.h"
#include "common/worker/worker_flags.h"
#include "services/cli/commands.h"
#include "services/cli/engine_report.h"
#include "services/cli/machine.h"

namespace setu::cli {
namespace {

using engine::ModelRunner;

struct EngineFlags {
  worker::WorkerFlags model;
  std::vector<std::string> prefill = {"512"};
  std::vector<std::string> decode = {"1", "4", "16"};
  int32_t context = 64;
  int32_t chunk_tokens = 512;
  int32_t rounds = 7;
  double round_seconds = 0.2;
  std::optional<std::string> csv, json, svg;
};

// What is timed: `batch` sequences that hold `start` tokens get `tokens` more each.
struct Case {
  std::string name;
  int32_t batch = 1;
  int32_t tokens = 1;
  int32_t start = 0;
};

absl::StatusOr<std::vector<Case>> Cases(const EngineFlags& flags) {
  std::vector<Case> cases;
  const auto add = [&](const char* flag, const std::string& text, auto make) {
    int32_t count = 0;
    if (!absl::SimpleAtoi(text, &count) || count < 1 || count > 65536) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", flag, " has '", text, "'; it must be a list of numbers in [1, 65536]"));
    }
    cases.push_back(make(count));
    return absl::OkStatus();
  };
  for (const std::string& text : flags.prefill) {
    SETU_RETURN_IF_ERROR(add("prefill", text, [](int32_t n) {
      return Case{.name = absl::StrCat("prefill ", n), .tokens = n};
    }));
  }
  for (const std::string& text : flags.decode) {
    SETU_RETURN_IF_ERROR(add("decode", text, [&](int32_t n) {
      return Case{.name = absl::StrCat("decode x", n), .batch = n, .start = flags.context};
    }));
  }
  return cases;
}

absl::Status CheckRoom(ModelRunner& runner, const Case& c) {
  const int32_t tokens = c.start + c.tokens, block = runner.options().block_tokens;
  if (tokens <= runner.max_sequence_tokens() &&
      int64_t{c.batch} * kv::BlocksFor(tokens, block) <= runner.pool().total()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      c.name, ": ", c.batch, " sequences of ", tokens, " tokens do not fit the model's context of ",
      runner.config().context_length, " or the KV pool of ", runner.pool().total() * block,
      " tokens; give a smaller --context or more --kv-memory"));
}

// The steps of one case, over sequences that it holds.
class Pass {
 public:
  Pass(ModelRunner& runner, const Case& c, int32_t chunk)
      : runner_(runner), case_(c), chunk_(chunk) {
    const int32_t vocabulary = runner.config().vocabulary;
    for (int64_t i = 0; i < c.start + c.tokens; ++i) {
      ids_.push_back(static_cast<int32_t>((i * 7919 + 101) % vocabulary));
    }
    for (int32_t i = 0; i < c.batch; ++i) {
      leases_.push_back(
          *runner.pool().Take(kv::BlocksFor(std::ssize(ids_), runner.options().block_tokens)));
    }
    if (c.start > 0) FillContext();
  }

  void Run() { Feed(leases_, case_.start, case_.start + case_.tokens); }

  // What each step of a pass computes.
  std::vector<roofline::StepRows> Steps() const {
    std::vector<roofline::StepRows> steps;
    const int32_t end = case_.start + case_.tokens;
    for (int32_t at = case_.start; at < end; at += chunk_) {
      const int32_t count = std::min(chunk_, end - at);
      roofline::StepRows& rows = steps.emplace_back();
      for (int32_t i = 0; i < case_.batch; ++i) rows.Add(count, at, at + count == end);
    }
    return steps;
  }

 private:
  // Computes the first chunk of one sequence; its KV, again and again, is the context of all.
  // Attention takes as long over these keys as over others, which would take minutes to compute.
  void FillContext() {
    const kv::BlockLease& first = leases_.front();
    const int32_t block = runner_.options().block_tokens;
    const int32_t computed = std::min(case_.start, chunk_);
    Feed({&first, 1}, 0, computed);
    const int32_t whole = std::max(1, computed / block);
    for (const kv::BlockLease& lease : leases_) {
      for (int32_t i = 0; i < kv::BlocksFor(case_.start, block); ++i) {
        if (&lease == &first && i < whole) continue;
        runner_.storage().CopyBlock(first.blocks()[i % whole], lease.blocks()[i]);
      }
    }
  }

  // Positions [from, to) of every sequence, in chunks; the last one's logits are wanted.
  void Feed(std::span<const kv::BlockLease> leases, int32_t from, int32_t to) {
    for (int32_t at = from; at < to; at += chunk_) {
      const int32_t end = std::min(to, at + chunk_);
      entries_.clear();
      for (const kv::BlockLease& lease : leases) {
        entries_.push_back({.ids = std::span(ids_).subspan(at, end - at),
                            .start = at,
                            .blocks = lease.blocks(),
                            .want_logits = end == to});
      }
      runner_.Step(entries_);
    }
  }

  ModelRunner& runner_;
  const Case& case_;
  const int32_t chunk_;
  std::vector<int32_t> ids_;
  std::vector<kv::BlockLease> leases_;
  std::vector<engine::StepEntry> entries_;
};

// A round repeats the pass for at least `round_seconds`, each time after all weights were read: how
// fast the memory of a shared machine is changes from moment to moment.
EngineRow Measure(ModelRunner& runner, const roofline::StepModel& model, const Case& c,
                  const EngineFlags& flags) {
  Pass pass(runner, c, flags.chunk_tokens);
  EngineRow row = {.name = c.name, .tokens = 1.0 * c.batch * c.tokens};
  for (const roofline::StepRows& step : pass.Steps()) {
    row.work += roofline::WorkOf(model.shape, step);
    row.terms += model.Terms(step);
  }
  for (int32_t round = 0; round < flags.rounds; ++round) {
    int passes = 0;
    double seconds = 0, read = 0;
    do {
      read += 1 / roofline::ReadWeights(runner.ops(), runner.weights());
      seconds += roofline::SecondsOf([&] { pass.Run(); });
      ++passes;
    } while (seconds < flags.round_seconds);
    row.rounds.push_back({seconds / passes, passes / read});
  }
  std::ranges::sort(row.rounds, {}, &EngineRound::seconds);
  return row;
}

absl::StatusOr<EngineReport> RunCases(const EngineFlags& flags) {
  SETU_ASSIGN_OR_RETURN(const std::vector<Case> cases, Cases(flags));
  int32_t batch = 1;
  for (const Case& c : cases) batch = std::max(batch, c.batch);
  StderrLogger logger("setu bench engine");
  EngineReport report = {.cpu = CpuModel(),
                         .huge_pages = HugePages(),
                         .cores = static_cast<int32_t>(std::thread::hardware_concurrency()),
                         .load = LoadAverage(),
                         .context = flags.context};
  SETU_ASSIGN_OR_RETURN(const auto runner,
                        flags.model.LoadModel({.max_rows = std::max(flags.chunk_tokens, batch),
                                               .max_logits = std::max(64, batch)},
                                              logger));
  for (const Case& c : cases) SETU_RETURN_IF_ERROR(CheckRoom(*runner, c));
  report.numerics = runner->fingerprint().numerics;
  report.isa = runner->ops().isa_name();
  report.threads = runner->ops().threads();
  report.model = runner->config().name;
  report.quantization = runner->config().quantization;
  report.weight_bytes = static_cast<int64_t>(runner->weight_bytes());
  report.huge_page_bytes = HugePageBytes();
  for (const Case& c : cases) {
    logger.Info(absl::StrCat("timing ", c.name));
    // Right before it, for the same reason.
    const roofline::StepModel model = roofline::MeasureStepModel(*runner);
    if (report.rows.empty()) report.peaks = model.peaks;
    report.peaks.Raise(model.peaks);
    report.rows.push_back(Measure(*runner, model, c, flags));
  }
  report.Raise();
  return report;
}

// A file that a flag names, opened before the run: one that cannot be written is known at once.
class Output {
 public:
  static absl::StatusOr<Output> Open(const char* flag, const std::optional<std::string>& path) {
    Output output(flag, path.value_or(""));
    if (path) output.file_.open(*path);
    if (path && !output.file_) return output.CannotWrite();
    return output;
  }
  absl::Status Write(const std::string& text) {
    if (!file_.is_open() || file_ << text << std::flush) return absl::OkStatus();
    return CannotWrite();
  }

 private:
  Output(const char* flag, std::string path) : flag_(flag), path_(std::move(path)) {}
  absl::Status CannotWrite() const {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write ", flag_, " '", path_, "': ", strerror(errno), "; name a file that can be"));
  }
  const char* flag_;
  std::string path_;
  std::ofstream file_;
};

absl::Status Run(const EngineFlags& flags) {
  SETU_ASSIGN_OR_RETURN(Output csv, Output::Open("--csv", flags.csv));
  SETU_ASSIGN_OR_RETURN(Output json, Output::Open("--json", flags.json));
  SETU_ASSIGN_OR_RETURN(Output svg, Output::Open("--svg", flags.svg));
  SETU_ASSIGN_OR_RETURN(const EngineReport report, RunCases(flags));
  std::fputs(absl::StrCat(report.Head(), "\n", report.Text()).c_str(), stdout);
  SETU_RETURN_IF_ERROR(csv.Write(report.Csv()));
  SETU_RETURN_IF_ERROR(json.Write(report.Json()));
  return svg.Write(RooflinePlot(report));
}

}  // namespace

int RunBenchEngine(const Arguments& arguments) {
  EngineFlags flags;
  config::Options options(
      "setu bench engine",
      "Times prefill and decode of a model in this process, beside what the machine could do.",
      {"setu bench engine --model model.gguf",
       "setu bench engine --model model.gguf --prefill 512 --decode 1,16,32 --context 4096",
       "setu bench engine --model model.gguf --svg roofline.svg --json run.json --csv run.csv"});
  flags.model.AddModelTo(options);
  options.Add("prefill", &flags.prefill, "prompt lengths to prefill");
  options.Add("decode", &flags.decode, "batches to decode a token of");
  options
      .Add("context", &flags.context,
           "tokens before the decoded one; all after a first chunk repeat its keys and values")
      .Range(1, 1 << 20);
  options.Add("chunk-tokens", &flags.chunk_tokens, "tokens of one prefill step").Range(16, 8192);
  options.Add("rounds", &flags.rounds, "rounds whose median is shown").Range(1, 1000);
  options.Add("round-seconds", &flags.round_seconds, "a round repeats its case this long")
      .Range(0, 60);
  options.Add("csv", &flags.csv, "write the table there");
  options.Add("json", &flags.json, "write all of it there");
  options.Add("svg", &flags.svg, "write the roofline plot there");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "setu bench engine: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace setu::cli
