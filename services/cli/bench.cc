// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>

#include "absl/strings/str_cat.h"
#include "services/cli/bench_report.h"
#include "services/cli/commands.h"
#include "services/cli/inference_client.h"
#include "services/cli/interrupts.h"

namespace setu::cli {
namespace {

struct BenchFlags {
  std::string address = "127.0.0.1:50051";
  int32_t requests = 64;
  int32_t concurrency = 8;
  double rate = 0;  // 0: closed loop
  int32_t prompt_tokens = 128;
  int32_t max_tokens = 64;
  int64_t seed = 1;
  std::optional<std::string> json;
  Duration deadline = std::chrono::minutes(10);
};

// Text of everyday words, so that prompts of any model have real tokens.
constexpr char kText[] =
    "A bridge carries people over water, and its builders count what each stone must bear. In the "
    "morning the market on the far side opens; carts wait in line, and whoever comes first goes "
    "first. When the river rises, the keeper closes one lane and writes down who passed. ";

absl::StatusOr<std::vector<uint32_t>> PromptSource(InferenceClient& client, int32_t tokens) {
  auto ids = client.Tokenize(kText, std::chrono::seconds(10));
  if (!ids.ok()) return ids.status();
  if (ids->empty()) return absl::InternalError("the router made no token ids of a long text");
  const std::vector<uint32_t> once = *ids;
  while (static_cast<int32_t>(ids->size()) < 2 * tokens) {
    ids->insert(ids->end(), once.begin(), once.end());
  }
  return ids;
}

// Runs requests 0 .. n-1 on `concurrency` threads; with a rate, request i starts at its Poisson
// arrival time or as soon as a thread is free after it.
class Load {
 public:
  Load(const BenchFlags& flags, std::vector<uint32_t> source)
      : flags_(flags), source_(std::move(source)), samples_(flags.requests) {
    std::mt19937_64 random(flags.seed);
    Duration at{};
    for (int32_t i = 0; i < flags.requests; ++i) {
      offsets_.push_back(random() % std::max<size_t>(source_.size() - flags.prompt_tokens, 1));
      if (flags.rate > 0) {
        const double gap = std::exponential_distribution<double>(flags.rate)(random);
        at += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(gap));
      }
      arrivals_.push_back(at);
    }
  }

  // Of the requests that ended before `stop` was requested, which ends all others.
  BenchReport Run(const std::stop_token& stop) {
    start_ = clock_.Now();
    std::vector<std::thread> threads;
    for (int32_t t = 0; t < flags_.concurrency; ++t) {
      threads.emplace_back([this, &stop] { Serve(stop); });
    }
    for (std::thread& thread : threads) thread.join();
    if (progress_) std::fputs("\n", stderr);
    std::vector<BenchSample> ended;
    for (std::optional<BenchSample>& sample : samples_) {
      if (sample) ended.push_back(*std::move(sample));
    }
    return Summarise(ended, clock_.Now() - start_);
  }

 private:
  void Serve(const std::stop_token& stop) {
    InferenceClient client(flags_.address);
    for (int32_t i; (i = next_.fetch_add(1)) < flags_.requests;) {
      WaitUntil(start_ + arrivals_[i], stop);
      BenchSample sample = Ask(client, i, stop);
      if (stop.stop_requested()) return;
      samples_[i] = std::move(sample);
      const int32_t done = done_.fetch_add(1) + 1;
      if (progress_) std::fprintf(stderr, "\r%d of %d requests", done, flags_.requests);
    }
  }

  static void WaitUntil(TimePoint at, const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_until(lock, stop, at, [] { return false; });
  }

  BenchSample Ask(InferenceClient& client, int32_t i, const std::stop_token& stop) {
    v1::GenerateRequest request;
    const auto first = source_.begin() + static_cast<int64_t>(offsets_[i]);
    request.mutable_token_ids()->mutable_ids()->Add(first, first + flags_.prompt_tokens);
    request.mutable_sampling()->set_max_tokens(static_cast<uint32_t>(flags_.max_tokens));
    request.mutable_sampling()->set_temperature(0);
    request.mutable_stopping()->set_ignore_eos(true);

    BenchSample sample;
    const TimePoint sent = clock_.Now();
    TimePoint last = sent;
    const auto on_response = [&](const v1::GenerateResponse& response) {
      if (response.has_finished()) {
        sample.prompt_tokens = response.finished().usage().prompt_tokens();
        sample.generated_tokens = response.finished().usage().completion_tokens();
      }
      if (!response.has_delta() || response.delta().token_ids_size() == 0) return;
      const TimePoint now = clock_.Now();
      if (sample.first_token == Duration{}) {
        sample.first_token = now - sent;
      } else {
        const int tokens = response.delta().token_ids_size();
        sample.between.insert(sample.between.end(), tokens, (now - last) / tokens);
      }
      last = now;
    };
    const absl::Status end = client.Generate(request, flags_.deadline, on_response, stop);
    sample.total = clock_.Now() - sent;
    sample.status = absl::StatusCodeToString(end.code());
    sample.error = std::string(end.message());
    return sample;
  }

  const BenchFlags& flags_;
  const SteadyClock clock_;
  const bool progress_ = isatty(STDERR_FILENO) == 1;
  std::vector<uint32_t> source_;
  std::vector<size_t> offsets_;     // [requests]: where in the source a prompt starts
  std::vector<Duration> arrivals_;  // [requests], from the start
  // [requests]; each thread writes its own; empty: it did not end by itself.
  std::vector<std::optional<BenchSample>> samples_;
  TimePoint start_{};
  std::atomic<int32_t> next_ = 0;
  std::atomic<int32_t> done_ = 0;
};

int CannotWrite(const std::string& path) {
  std::fprintf(stderr, "setu bench: cannot write --json '%s': %s; name a file that can be\n",
               path.c_str(), strerror(errno));
  return 1;
}

}  // namespace

int RunBench(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "engine") {
    return RunBenchEngine({arguments.begin() + 1, arguments.end()});
  }
  BenchFlags flags;
  config::Options options("setu bench", "Loads a running cluster and reports what its clients see.",
                          {"setu bench --concurrency 16 --requests 200",
                           "setu bench --rate 5 --requests 100 --json result.json",
                           "setu bench engine --help    # of a model in this process, no cluster"});
  options.AddAddress("address", &flags.address, "the router, HOST:PORT");
  options.Add("requests", &flags.requests, "how many in all").Range(1, 1'000'000);
  options.Add("concurrency", &flags.concurrency, "at most so many at once").Range(1, 4096);
  options.Add("rate", &flags.rate, "Poisson arrivals per second; 0: as fast as answers come")
      .Range(0, 1e6);
  options.Add("prompt-tokens", &flags.prompt_tokens, "length of each prompt").Range(1, 1 << 20);
  options.Add("max-tokens", &flags.max_tokens, "length of each answer").Range(1, 1 << 20);
  options.Add("seed", &flags.seed, "of prompts and arrivals");
  options.Add("json", &flags.json, "also write the report to this file");
  options.Add("deadline", &flags.deadline, "of each request").Range(0.001, 86400);
  if (const auto code = ParseOrExit(options, arguments)) return *code;

  const InterruptMask held(SIG_BLOCK);  // before any thread starts
  const Interrupt interrupt;
  InferenceClient client(flags.address);
  auto source = PromptSource(client, flags.prompt_tokens);
  if (!source.ok()) {
    std::fprintf(stderr, "setu bench: %s\n", source.status().ToString().c_str());
    return 1;
  }
  // Before the run, which may take long: a file that cannot be written is known at once.
  std::optional<std::ofstream> json;
  if (flags.json && !json.emplace(*flags.json)) return CannotWrite(*flags.json);
  Load load(flags, *std::move(source));
  const BenchReport report = load.Run(interrupt.token());
  std::fputs(report.Text().c_str(), stdout);
  if (json && !(*json << report.Json() << std::flush)) return CannotWrite(*flags.json);
  if (interrupt.came()) return 128 + SIGINT;
  return report.ok() ? 0 : 1;
}

}  // namespace setu::cli
