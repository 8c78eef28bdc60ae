// SPDX-License-Identifier: Apache-2.0
// How fast a loaded model prefills and decodes, and how many bytes and operations a token costs.
//
//   engine_bench                                          # the default model, int8-g32
//   engine_bench --numerics int8-g32,f32 --csv m.gguf
//
// A row of the table is the median over the rounds. Bytes of a step are what it must move at least:
// the packed weights once, the KV of every visible position once, the KV of its own tokens.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/options.h"
#include "common/engine/model_runner.h"
#include "tests/support/real_model.h"

namespace setu {
namespace {

using engine::ModelRunner;

constexpr double kMiB = 1024.0 * 1024.0;

struct BenchOptions {
  std::vector<std::string> models;
  std::vector<std::string> numerics = {"int8-g32"};
  std::string isa = "auto";
  int32_t threads = 0;
  int32_t rounds = 7;
  double round_seconds = 0.2;
  int32_t chunk = 512;
  std::vector<std::string> prefill = {"64", "512"};
  std::vector<std::string> decode = {"1", "4", "16"};
  int32_t context = 64;
  bool csv = false;
};

// What is timed: `batch` sequences that hold `start` tokens get `tokens` more each.
struct Case {
  std::string name;
  int32_t batch = 1;
  int32_t tokens = 1;
  int32_t start = 0;
};

// Of one pass over a case.
struct Cost {
  double bytes = 0;
  double operations = 0;  // multiplications and additions
};

std::vector<int32_t> Ids(int32_t count, int32_t vocabulary) {
  std::vector<int32_t> ids(count);
  for (int64_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>((i * 7919 + 101) % vocabulary);
  return ids;
}

// Feeds positions [from, to) of every sequence, in chunks, and wants the last one's logits.
void Feed(ModelRunner& runner, std::span<const kv::BlockLease> leases, std::span<const int32_t> ids,
          int32_t from, int32_t to, int32_t chunk) {
  std::vector<engine::StepEntry> entries;
  for (int32_t at = from; at < to; at += chunk) {
    const int32_t end = std::min(to, at + chunk);
    entries.clear();
    for (const kv::BlockLease& lease : leases) {
      entries.push_back({.ids = ids.subspan(at, end - at),
                         .start = at,
                         .blocks = lease.blocks(),
                         .want_logits = end == to});
    }
    runner.Step(entries);
  }
}

Cost CostOf(const ModelRunner& runner, const Case& c, int32_t chunk) {
  const model::ModelConfig& m = runner.config();
  const kv::KvLayout& layout = runner.fingerprint().layout;
  const double q = 1.0 * m.heads * m.head_dim, kv = 1.0 * m.kv_heads * m.head_dim;
  const double layer = 2.0 * m.hidden * (2 * q + 2 * kv + 3.0 * m.ffn_hidden);
  const double kv_token = 1.0 * layout.block_bytes() / layout.block_tokens;
  Cost cost;
  for (int32_t done = 0; done < c.tokens; done += chunk) {
    const int32_t rows = std::min(chunk, c.tokens - done), seen = c.start + done + rows;
    cost.bytes += runner.step_weight_bytes() + c.batch * kv_token * (seen + rows);
    const double pairs = rows * (seen - (rows - 1) / 2.0);  // of a query and a key
    cost.operations += c.batch * m.layers * (rows * layer + 4.0 * q * pairs);
  }
  cost.operations += 2.0 * c.batch * m.hidden * m.vocabulary;
  return cost;
}

// Seconds of one pass, per round.
std::vector<double> Measure(ModelRunner& runner, const Case& c, const BenchOptions& options) {
  const std::vector<int32_t> ids = Ids(c.start + c.tokens, runner.config().vocabulary);
  std::vector<kv::BlockLease> leases;
  for (int32_t i = 0; i < c.batch; ++i) {
    leases.push_back(*runner.pool().Take(kv::BlocksFor(std::ssize(ids), 16)));
    Feed(runner, {&leases.back(), 1}, ids, 0, std::ssize(ids), options.chunk);
  }
  std::vector<double> seconds;
  for (int32_t round = 0; round < options.rounds; ++round) {
    int passes = 0;
    double passed = 0;
    const auto begin = std::chrono::steady_clock::now();
    do {
      Feed(runner, leases, ids, c.start, c.start + c.tokens, options.chunk);
      ++passes;
      passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    } while (passed < options.round_seconds);
    seconds.push_back(passed / passes);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

absl::StatusOr<std::vector<Case>> Cases(const BenchOptions& options) {
  std::vector<Case> cases;
  const auto add = [&](const char* name, const std::string& text, auto make) {
    int32_t count = 0;
    if (!absl::SimpleAtoi(text, &count) || count < 1 || count > 65536) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " is '", text, "'; it must be a list of numbers in [1, 65536]"));
    }
    cases.push_back(make(count));
    return absl::OkStatus();
  };
  for (const std::string& text : options.prefill) {
    SETU_RETURN_IF_ERROR(add("prefill", text, [](int32_t n) {
      return Case{.name = absl::StrCat("prefill ", n), .tokens = n};
    }));
  }
  for (const std::string& text : options.decode) {
    SETU_RETURN_IF_ERROR(add("decode", text, [&](int32_t n) {
      return Case{.name = absl::StrCat("decode x", n), .batch = n, .start = options.context};
    }));
  }
  return cases;
}

std::string CpuModel() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

// Such as "32768K". The kernel's word: sysconf is ten times off on some virtual AMD machines.
std::string L3Size() {
  std::string size = "unknown";
  std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> size;
  return size;
}

void PrintHead(ModelRunner& runner, const BenchOptions& options) {
  const char* mark = options.csv ? "# " : "";
  std::printf("%sCPU      %s, %ld cores, L3 %s\n", mark, CpuModel().c_str(),
              sysconf(_SC_NPROCESSORS_ONLN), L3Size().c_str());
  std::printf("%sengine   %s, %s, %d threads\n", mark, runner.fingerprint().numerics.c_str(),
              runner.ops().isa_name().c_str(), runner.ops().threads());
  std::printf("%smodel    %s, %s, %.1f MiB packed, %.1f MiB of them read per step\n", mark,
              runner.config().name.c_str(), runner.config().quantization.c_str(),
              runner.weight_bytes() / kMiB, runner.step_weight_bytes() / kMiB);
  if (options.csv) {
    std::printf(
        "numerics,case,tokens_per_s,best_tokens_per_s,pass_ms,bytes_per_token,GB_per_s,"
        "flops_per_token,GFLOP_per_s\n");
  } else {
    std::printf("\n%-12s %10s %10s %9s %10s %7s %13s %9s\n", "", "tokens/s", "best", "pass ms",
                "MB/token", "GB/s", "MFLOP/token", "GFLOP/s");
  }
}

void PrintRow(const ModelRunner& runner, const Case& c, const std::vector<double>& seconds,
              const BenchOptions& options) {
  const Cost cost = CostOf(runner, c, options.chunk);
  const double tokens = 1.0 * c.batch * c.tokens, median = seconds[seconds.size() / 2];
  if (options.csv) {
    std::printf("%s,%s,%.1f,%.1f,%.3f,%.0f,%.2f,%.0f,%.1f\n", runner.fingerprint().numerics.c_str(),
                c.name.c_str(), tokens / median, tokens / seconds.front(), 1e3 * median,
                cost.bytes / tokens, 1e-9 * cost.bytes / median, cost.operations / tokens,
                1e-9 * cost.operations / median);
  } else {
    std::printf("%-12s %10.1f %10.1f %9.2f %10.2f %7.2f %13.1f %9.1f\n", c.name.c_str(),
                tokens / median, tokens / seconds.front(), 1e3 * median, 1e-6 * cost.bytes / tokens,
                1e-9 * cost.bytes / median, 1e-6 * cost.operations / tokens,
                1e-9 * cost.operations / median);
  }
  std::fflush(stdout);
}

absl::Status CheckRoom(ModelRunner& runner, const Case& c) {
  const int32_t tokens = c.start + c.tokens;
  if (tokens <= runner.max_sequence_tokens() &&
      int64_t{c.batch} * kv::BlocksFor(tokens, 16) <= runner.pool().total()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      c.name, ": ", c.batch, " sequences of ", tokens, " tokens do not fit the context of ",
      runner.config().context_length, " or the KV pool of ", runner.pool().total(), " blocks"));
}

absl::Status Run(const BenchOptions& options) {
  if (options.models.size() != 1) return absl::InvalidArgumentError("give one MODEL");

  SETU_ASSIGN_OR_RETURN(const std::vector<Case> cases, Cases(options));
  int32_t batch = 1;
  for (const Case& c : cases) batch = std::max(batch, c.batch);
  for (const std::string& numerics : options.numerics) {
    SETU_ASSIGN_OR_RETURN(const kernels::NumericPath path, kernels::ParseNumericPath(numerics));
    SETU_ASSIGN_OR_RETURN(
        const auto runner,
        ModelRunner::Load({.model_path = options.models.front(),
                           .cpu = {.path = path, .isa = options.isa, .threads = options.threads},
                           .max_rows = std::max(options.chunk, batch),
                           .max_logits = std::max(64, batch)},
                          nullptr));
    for (const Case& c : cases) SETU_RETURN_IF_ERROR(CheckRoom(*runner, c));
    PrintHead(*runner, options);
    for (const Case& c : cases) PrintRow(*runner, c, Measure(*runner, c, options), options);
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  BenchOptions o;
  config::Options flags("engine_bench", "Times prefill and decode of a model on this machine.",
                        {"engine_bench --numerics int8-g32,f32", "engine_bench --csv m.gguf"});
  flags.AddPositional("MODEL", &o.models, "GGUF file; the tests' default model where absent");
  flags.Add("numerics", &o.numerics,
            "numeric paths to time, one after another: int8-g32, bf16-tile, f32");
  flags.Add("isa", &o.isa, "kernels: auto, portable, avx2, avx512");
  flags.Add("threads", &o.threads, "0: as many as this process may use").Range(0, 1024);
  flags.Add("rounds", &o.rounds, "rounds whose median is shown").Range(1, 1000);
  flags.Add("round-seconds", &o.round_seconds, "a round repeats its case this long").Range(0, 60);
  flags.Add("chunk", &o.chunk, "tokens of one prefill step").Range(1, 8192);
  flags.Add("prefill", &o.prefill, "prompt lengths to prefill");
  flags.Add("decode", &o.decode, "batches to decode a token of");
  flags.Add("context", &o.context, "tokens before the decoded one").Range(0, 1 << 20);
  flags.Add("csv", &o.csv, "comma-separated rows; lines about the machine start with #");
  NullLogger logger;
  const auto outcome = flags.Parse(argc, argv, {}, logger);
  absl::Status status = outcome.status();
  if (status.ok()) {
    if (*outcome == config::Options::Outcome::kHelpShown) return 0;
    if (o.models.empty()) o.models.push_back(test::RealModelPath());
    status = Run(o);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "engine_bench: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace setu

int main(int argc, char** argv) { return setu::Main(argc, argv); }
