// SPDX-License-Identifier: Apache-2.0
// `setu up`: one machine, one cluster. Starts the workers and the router as processes, restarts
// one that dies, and drains them in order at the end.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/engine/memory_limit.h"
#include "common/model/model_config.h"
#include "common/model/weights.h"
#include "common/rpc/listener.h"
#include "kernels/device.h"
#include "services/cli/commands.h"
#include "services/cli/cores.h"
#include "services/cli/held_port.h"
#include "services/cli/inference_client.h"
#include "services/cli/process.h"
#include "services/cli/supervision.h"
#include "services/cli/up_flags.h"

namespace setu::cli {
namespace {

enum class Role { kRouter, kPrefill, kDecode };

struct Child {
  Role role;
  std::string name;
  std::string metrics;  // address
  std::vector<std::string> arguments;
  std::vector<int> cpus;  // it may use these alone; empty: all
  std::optional<Process> process;
  TimePoint started{};
  RestartBackoff backoff;
  std::optional<TimePoint> restart_at;
};

std::string AddressOf(const UpFlags& flags) {
  const bool bare_ipv6 = absl::StrContains(flags.host, ':') && flags.host.front() != '[';
  const std::string host = bare_ipv6 ? absl::StrCat("[", flags.host, "]") : flags.host;
  return absl::StrCat(host, ":", flags.port);
}

bool OnEveryInterface(const UpFlags& flags) {
  return flags.host == "0.0.0.0" || flags.host == "::" || flags.host == "[::]";
}

// Where a client on this machine reaches the router.
std::string LocalAddressOf(const UpFlags& flags) {
  return OnEveryInterface(flags) ? absl::StrCat("127.0.0.1:", flags.port) : AddressOf(flags);
}

// What every process would find out by itself, later and each in its own words.
absl::Status CheckModel(const UpFlags& flags) {
  const auto file = OpenModel(flags.model[0]);
  const absl::Status status = file.ok() ? model::ReadModelConfig(**file).status() : file.status();
  if (absl::IsNotFound(status)) return status;  // it says what to do
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(status.message(),
                                     "\nGive a GGUF file of a model that Setu runs; setu model "
                                     "inspect FILE shows what is in one"));
  }
  SETU_ASSIGN_OR_RETURN(const auto floats, model::ParseFloatWeights(flags.weights));
  return CheckKvMemory(flags.kv_memory, model::PackedBytes(**file, floats),
                       flags.prefill_workers + flags.decode_workers, engine::MemoryLimitBytes());
}

class Cluster {
 public:
  explicit Cluster(const UpFlags& flags) : flags_(flags), address_(LocalAddressOf(flags)) {}

  absl::Status Start() {
    SETU_RETURN_IF_ERROR(Plan());
    for (Child& child : children_) SETU_RETURN_IF_ERROR(StartChild(child));
    return absl::OkStatus();
  }

  // Until a signal asks to stop: the exit code. An error where a process does not even start up.
  absl::StatusOr<int> Supervise() {
    InferenceClient client({.address = address_});
    bool ready = false;
    while (true) {
      const auto longest = std::chrono::milliseconds(ready ? 1000 : 200);
      // Also before it is known to be ready: a client may know it, and wait for an answer.
      if (WaitForSignal(longest) != 0) return Drain();
      SETU_RETURN_IF_ERROR(Reap(ready));
      if (!ready && client.Ready(std::chrono::milliseconds(500))) {
        ready = true;
        PrintBox(client);
      }
    }
  }

 private:
  // Router first, so that nothing new comes; then those that push, then those that are pushed to.
  int Drain() {
    std::fputs("\nDraining (again Ctrl-C: stop at once)\n", stderr);
    bool orderly = true;
    for (const Role role : {Role::kRouter, Role::kPrefill, Role::kDecode}) {
      for (Child& child : children_) {
        if (child.role == role && child.process) child.process->Signal(SIGTERM);
      }
      const TimePoint deadline = clock_.Now() + flags_.drain_grace + std::chrono::seconds(5);
      for (Child& child : children_) {
        if (child.role != role || !child.process) continue;
        const Drained drained = WaitForEnd(child, deadline);
        if (drained.signal != 0) return AtOnce(drained.signal);
        orderly = orderly && drained.in_time;
      }
    }
    std::fputs("Stopped\n", stderr);
    return orderly ? 0 : 1;
  }

  // What still runs dies with its Process. The exit code that a shell gives a signal.
  int AtOnce(int signal) {
    children_.clear();
    std::fputs("Stopped at once\n", stderr);
    return 128 + signal;
  }

  absl::Status Plan() {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const int32_t workers = flags_.prefill_workers + flags_.decode_workers;
    const int32_t cores = flags_.threads > 0 ? flags_.threads : kernels::AvailableThreads();
    const int64_t kv_bytes = flags_.kv_memory > 0
                                 ? flags_.kv_memory
                                 : DefaultKvBytes(engine::MemoryLimitBytes(), workers);
    const Share share = DivideMachine(cores, kv_bytes, workers);
    SETU_ASSIGN_OR_RETURN(const Cores own,
                          HandOut(flags_.pin_threads, CpusHere(kernels::AvailableCpus()),
                                  kernels::AvailableThreads(), share.threads, workers));
    std::fprintf(stderr, "%d workers, each %d thread(s) and %d MiB of KV, %s\n", workers,
                 share.threads, static_cast<int>(share.kv_bytes >> 20),
                 own.empty() ? "on shared cores" : "each thread on a core of its own");
    const std::string grace = TimeArgument(flags_.drain_grace);
    // A worker's own and its metrics', then the router's metrics'.
    for (int32_t i = 0; i < 2 * workers + 1; ++i) {
      SETU_ASSIGN_OR_RETURN(HeldPort port, HeldPort::Take());
      ports_.push_back(std::move(port));
    }
    std::vector<std::string> prefill, decode;
    for (int32_t i = 0; i < workers; ++i) {
      const bool is_prefill = i < flags_.prefill_workers;
      const std::string address = absl::StrCat("127.0.0.1:", ports_[2 * i].number());
      const std::string metrics = absl::StrCat("127.0.0.1:", ports_[2 * i + 1].number());
      (is_prefill ? prefill : decode).push_back(address);
      const char* role = is_prefill ? "prefill" : "decode";
      children_.push_back(
          {.role = is_prefill ? Role::kPrefill : Role::kDecode,
           .name = absl::StrCat(role, "-", is_prefill ? i : i - flags_.prefill_workers),
           .metrics = metrics,
           .arguments = {folder / absl::StrCat("setu-", role), "--listen", address,
                         "--metrics-listen", metrics, "--drain-grace", grace}});
      std::ranges::copy(flags_.WorkerArguments(share, !own.empty()),
                        std::back_inserter(children_.back().arguments));
      if (!own.empty()) {
        children_.back().cpus = own[i];
        std::fprintf(stderr, "%s on cores %s\n", children_.back().name.c_str(),
                     CpuList(own[i]).c_str());
      }
      children_.back().arguments.push_back(
          is_prefill ? absl::StrCat("--kv-shm=", flags_.kv_shm)
                     : absl::StrCat("--itl-target-ms=", flags_.itl_target_ms));
    }
    const std::string metrics = absl::StrCat(
        "127.0.0.1:", flags_.metrics_port > 0 ? flags_.metrics_port : ports_.back().number());
    children_.push_back(
        {.role = Role::kRouter,
         .name = "router",
         .metrics = metrics,
         .arguments = {folder / "setu-router", "--listen", AddressOf(flags_), "--metrics-listen",
                       metrics, "--prefill", absl::StrJoin(prefill, ","), "--decode",
                       absl::StrJoin(decode, ","), "--drain-grace", grace}});
    std::ranges::copy(flags_.RouterArguments(), std::back_inserter(children_.back().arguments));
    return absl::OkStatus();
  }

  absl::Status StartChild(Child& child) {
    SETU_ASSIGN_OR_RETURN(child.process, Process::Start(child.arguments, child.cpus));
    child.started = clock_.Now();
    child.restart_at.reset();
    return absl::OkStatus();
  }

  absl::Status Reap(bool ready) {
    for (Child& child : children_) {
      if (child.process) {
        const std::optional<ProcessEnd> end = child.process->Ended();
        if (!end) continue;
        child.process.reset();
        // What gives up by itself before the cluster was ever ready would do so again: its own
        // last line says why.
        if (!ready && end->signal == 0) {
          return absl::AbortedError(absl::StrCat(
              child.name, " did not start (", end->Text(), "); its last line says why (",
              children_.size() - 1,
              " workers share --kv-memory and --threads: its figures are of one part)"));
        }
        StartLater(child, absl::StrCat("ended (", end->Text(), ")"));
        if (end->signal == SIGKILL) {
          std::fputs("If nobody killed it, memory ran out: give less --kv-memory\n", stderr);
        }
      } else if (child.restart_at && clock_.Now() >= *child.restart_at) {
        const absl::Status started = StartChild(child);
        if (!started.ok()) StartLater(child, absl::StrCat("did not start: ", started.message()));
      }
    }
    return absl::OkStatus();
  }

  void StartLater(Child& child, const std::string& what_happened) {
    const Duration wait = child.backoff.AfterDeath(clock_.Now() - child.started);
    child.restart_at = clock_.Now() + wait;
    std::fprintf(stderr, "%s %s; starting it again in %.1f s\n", child.name.c_str(),
                 what_happened.c_str(), Milliseconds(wait) / 1000);
  }

  // The signal that asks to stop; 0: none did. SIGCHLD only wakes; it says nothing about which
  // child, so Reap looks at all.
  static int WaitForSignal(Duration longest) {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
    const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (longest - seconds).count()};
    const int signal = sigtimedwait(&set, nullptr, &timeout);
    return signal == SIGINT || signal == SIGTERM ? signal : 0;
  }

  struct Drained {
    int signal = 0;  // a second one asked to stop at once
    bool in_time = true;
  };
  Drained WaitForEnd(Child& child, TimePoint deadline) {
    while (!child.process->Ended()) {
      if (clock_.Now() >= deadline) {
        std::fprintf(stderr, "%s did not drain in time; killed\n", child.name.c_str());
        child.process.reset();
        return {.in_time = false};
      }
      if (const int signal = WaitForSignal(std::chrono::milliseconds(100))) return {signal};
    }
    return {};
  }

  void PrintBox(InferenceClient& client) const {
    const auto models = client.ListModels(std::chrono::seconds(2));
    const std::string what =  // a router that asks for tokens does not tell
        models.ok() && !models->empty()
            ? absl::StrCat(models->front().name(), " (", models->front().quantization(), ", ",
                           models->front().numerics(), ")")
            : flags_.model[0];
    const bool open = !flags_.auth_tokens;
    const std::string at = absl::StrCat("--address ", address_, open ? "" : " --token-file FILE");
    std::vector<std::string> lines = {
        absl::StrCat("Setu serves ", what, " at ", address_,
                     OnEveryInterface(flags_) ? " and on every interface" : "",
                     OnEveryInterface(flags_) && open ? ", no authentication" : ""),
        "",
        absl::StrCat(program_invocation_name, " generate ", at,
                     " --chat --temperature 0 --max-tokens 100 \"What is a bridge?\""),
        absl::StrCat(program_invocation_name, " chat ", at),
        absl::StrCat("grpcurl -plaintext ", open ? "" : "-H \"authorization: Bearer $(cat FILE)\" ",
                     "-d '{\"text\":\"A bridge is\",\"sampling\":",
                     "{\"temperature\":0,\"max_tokens\":100}}' ", address_,
                     " setu.v1.InferenceService/Generate"),
        ""};
    for (const Child& child : children_) {
      lines.push_back(
          absl::StrFormat("metrics of %-10s http://%s/metrics", child.name + ":", child.metrics));
    }
    size_t width = 0;
    for (const std::string& line : lines) width = std::max(width, line.size());
    const std::string edge(width + 2, '-');
    std::printf("+%s+\n", edge.c_str());
    for (const std::string& line : lines) {
      std::printf("| %-*s |\n", static_cast<int>(width), line.c_str());
    }
    std::printf("+%s+\n", edge.c_str());
    std::fflush(stdout);
  }

  const UpFlags& flags_;
  const std::string address_;
  const SteadyClock clock_;
  std::vector<HeldPort> ports_;  // of the children, also while one is started again
  std::vector<Child> children_;
};

// Signals are taken by sigtimedwait alone; threads started later inherit the mask.
void BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// The exit code. After an error nothing runs any more, so that what is printed of it stands last.
absl::StatusOr<int> Serve(const UpFlags& flags) {
  SETU_RETURN_IF_ERROR(rpc::Listener::Bind("--host, --port", AddressOf(flags)).status());
  if (flags.metrics_port > 0) {
    const std::string metrics = absl::StrCat("127.0.0.1:", flags.metrics_port);
    SETU_RETURN_IF_ERROR(rpc::Listener::Bind("--metrics-port", metrics).status());
  }
  SETU_RETURN_IF_ERROR(CheckModel(flags));
  Cluster cluster(flags);
  SETU_RETURN_IF_ERROR(cluster.Start());
  return cluster.Supervise();
}

}  // namespace

int RunUp(const Arguments& arguments) {
  UpFlags flags;
  config::Options options(
      "setu up", "Starts a whole cluster on this machine and watches over it.",
      {"setu up model.gguf", "setu up model.gguf --decode-workers 2 --port 6000",
       "setu up model.gguf --host 0.0.0.0 --threads 8 --kv-memory 8GiB"});
  flags.AddTo(options);
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  if (flags.model.size() != 1) {
    std::fputs("setu up: give exactly one model file\n", stderr);
    return 2;
  }

  BlockSignals();
  const absl::StatusOr<int> code = Serve(flags);
  if (code.ok()) return *code;
  std::fprintf(stderr, "setu up: %s\n", std::string(code.status().message()).c_str());
  return 1;
}

}  // namespace setu::cli
