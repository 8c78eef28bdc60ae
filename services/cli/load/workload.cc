// SPDX-License-Identifier: Apache-2.0
#include "services/cli/load/workload.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "services/cli/router_access.h"

namespace setu::cli {
namespace {

constexpr int64_t kMostRequests = 10'000'000;
constexpr int64_t kDefaultRequests = 64;
constexpr int32_t kDefaultClients = 8;

absl::Status Refused(absl::string_view why) { return absl::InvalidArgumentError(why); }

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  constexpr size_t kMostBytes = 64 << 20;
  std::ifstream in(path, std::ios::binary);
  if (!in) return Refused(absl::StrCat("cannot read --trace '", path, "'"));
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (text.size() > kMostBytes) {
    return Refused(absl::StrCat("--trace '", path, "' has over ", kMostBytes, " bytes"));
  }
  return ParseTrace(path, text);
}

std::string KindOf(const WorkloadFlags& flags) {
  if (flags.arrivals) return *flags.arrivals;
  if (flags.trace) return "trace";
  return flags.rate || flags.times_capacity ? "poisson" : "closed";
}

// What does not belong to that kind is refused, not passed over.
absl::Status CheckTogether(const WorkloadFlags& flags, const std::string& kind) {
  const bool loop = kind == "closed" || kind == "lockstep";
  const bool rated = !loop && kind != "trace";
  const auto refuse = [&](absl::string_view flag, absl::string_view of) {
    return Refused(absl::StrCat(flag, " is of ", of, "; these arrivals are ", kind));
  };
  if (flags.rate && !rated) return refuse("--rate", "fixed, poisson and bursts");
  if (flags.times_capacity && !rated) {
    return refuse("--times-capacity", "fixed, poisson and bursts");
  }
  if (flags.burst && kind != "bursts") return refuse("--burst", "bursts");
  if (flags.trace && kind != "trace") return refuse("--trace", "a trace");
  if (kind == "bursts" && !flags.burst) return Refused("arrivals that are bursts need --burst");
  if (kind == "trace" && !flags.trace) return Refused("arrivals that are a trace need --trace");
  if (rated && flags.rate.has_value() == flags.times_capacity.has_value()) {
    return Refused(
        absl::StrCat("arrivals that are ", kind, " need either --rate or --times-capacity"));
  }
  if (flags.concurrency && !loop && !flags.times_capacity) {
    return refuse("--concurrency", "closed loops, and of --times-capacity");
  }
  if ((flags.prefixes > 0) != (flags.prefix_tokens > 0)) {
    return Refused("--prefixes and --prefix-tokens go together");
  }
  return absl::OkStatus();
}

absl::StatusOr<ArrivalProcess> MakeArrivals(const WorkloadFlags& flags, const std::string& kind,
                                            int32_t clients) {
  const double rate = flags.rate.value_or(0);  // 0: AtRate sets it
  if (kind == "closed") return Closed{clients};
  if (kind == "lockstep") return Lockstep{clients};
  if (kind == "fixed") return Fixed{rate};
  if (kind == "poisson") return Poisson{rate};
  if (kind == "bursts") return Bursts{rate, static_cast<int32_t>(*flags.burst)};
  SETU_ASSIGN_OR_RETURN(Trace trace, ReadTrace(*flags.trace));
  return trace;
}

}  // namespace

void AddWorkloadFlags(config::Options& options, WorkloadFlags* flags) {
  options
      .Add("arrivals", &flags->arrivals,
           "how requests come; absent: trace, or poisson at a rate, else closed")
      .OneOf({"closed", "lockstep", "fixed", "poisson", "bursts", "trace"});
  options
      .Add("concurrency", &flags->concurrency,
           "clients of a closed loop, each asks again when answered; absent: 8")
      .Range(1, 100'000);
  options.Add("rate", &flags->rate, "arrivals per second, which wait for no answer")
      .Range(1e-6, 1e6);
  options
      .Add("times-capacity", &flags->times_capacity,
           "as rate: times --capacity, or times what --concurrency clients are answered first")
      .Range(0.01, 1000);
  options.Add("burst", &flags->burst, "requests of one burst").Range(1, 100'000);
  options.Add("trace", &flags->trace,
              "file with a line for each request: seconds, prompt tokens, answer tokens");
  options.Add("requests", &flags->requests, "how many in all; absent: 64, or as many as --duration")
      .Range(1, kMostRequests);
  options.Add("duration", &flags->duration, "no request starts after it; 0: as --requests says")
      .Range(0, 86400);
  options.Add("prompt-tokens", &flags->prompt_tokens,
              "length of each prompt: N, LOW..HIGH, A,B,C or lognormal:MEDIAN:SIGMA:MOST");
  options.Add("max-tokens", &flags->max_tokens, "length of each answer, in the same forms");
  options.Add("prefixes", &flags->prefixes, "prompts begin with one of so many shared texts")
      .Range(0, 100'000);
  options.Add("prefix-tokens", &flags->prefix_tokens, "length of each of these")
      .Range(0, Lengths::kMost);
  options.Add("cancel-share", &flags->cancel_share, "so much of the requests is cancelled")
      .Range(0, 1);
  options.Add("cancel-after", &flags->cancel_after, "after so many tokens of an answer");
  options.Add("deadline", &flags->deadline, "of each request").Range(0.001, 86400);
  options.Add("ttft-target-ms", &flags->ttft_target_ms, "a good answer begins within it")
      .Range(0.001, 1e9);
  options
      .Add("itl-target-ms", &flags->itl_target_ms,
           "a good answer takes no longer from token to token, in its mean")
      .Range(0.001, 1e9);
  options.Add("token-file", &flags->token_file,
              "file of its clients' bearer token, where the router asks for one");
}

absl::StatusOr<Workload> MakeWorkload(const std::string& name, const WorkloadFlags& flags) {
  const std::string kind = KindOf(flags);
  SETU_RETURN_IF_ERROR(CheckTogether(flags, kind));
  const auto clients = static_cast<int32_t>(flags.concurrency.value_or(kDefaultClients));
  SETU_ASSIGN_OR_RETURN(ArrivalProcess arrivals, MakeArrivals(flags, kind, clients));
  SETU_ASSIGN_OR_RETURN(Lengths prompt, Lengths::Parse("--prompt-tokens", flags.prompt_tokens));
  SETU_ASSIGN_OR_RETURN(Lengths answer, Lengths::Parse("--max-tokens", flags.max_tokens));
  SETU_ASSIGN_OR_RETURN(Lengths after, Lengths::Parse("--cancel-after", flags.cancel_after));
  SETU_ASSIGN_OR_RETURN(std::string token, ReadToken(flags.token_file));
  const bool ends_by_itself = flags.duration > Duration{} || kind == "trace";
  Workload workload{
      .name = name,
      .arrivals = std::move(arrivals),
      .requests = flags.requests.value_or(ends_by_itself ? kMostRequests : kDefaultRequests),
      .duration = flags.duration > Duration{} ? flags.duration : Duration::max(),
      .prompt_tokens = std::move(prompt),
      .max_tokens = std::move(answer),
      .prefixes = {},
      .cancels = {},
      .deadline = flags.deadline,
      .targets = {.ttft_ms = flags.ttft_target_ms, .itl_ms = flags.itl_target_ms},
      .token = std::move(token),
      .times_capacity = flags.times_capacity,
      .knee_clients = clients};
  if (flags.prefixes > 0) workload.prefixes = {flags.prefixes, flags.prefix_tokens};
  if (flags.cancel_share > 0) workload.cancels = {flags.cancel_share, std::move(after)};
  return workload;
}

Workload KneeOf(Workload workload) {
  workload.arrivals = Closed{workload.knee_clients};
  return workload;
}

Workload AtRate(Workload workload, double rate) {
  if (auto* fixed = std::get_if<Fixed>(&workload.arrivals)) fixed->rate = rate;
  if (auto* poisson = std::get_if<Poisson>(&workload.arrivals)) poisson->rate = rate;
  if (auto* bursts = std::get_if<Bursts>(&workload.arrivals)) bursts->rate = rate;
  return workload;
}

}  // namespace setu::cli
