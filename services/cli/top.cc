// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>

#include "common/base/clock.h"
#include "services/cli/commands.h"
#include "services/cli/inference_client.h"
#include "services/cli/interrupts.h"
#include "services/cli/top_screen.h"

namespace setu::cli {
namespace {

constexpr Duration kEvery = std::chrono::seconds(1);
constexpr Duration kDeadline = std::chrono::seconds(5);
constexpr char kClear[] = "\033[H\033[2J";  // to the top left, all of it erased

void Rest(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, kEvery, [] { return false; });
}

// Until Ctrl-C; a router that does not answer is told of, and asked again.
int Watch(const RouterTarget& target) {
  const InterruptMask held(SIG_BLOCK);  // before any thread starts
  const Interrupt interrupt;
  InferenceClient client(target);
  const SteadyClock clock;
  std::optional<v1::GetClusterResponse> before;
  TimePoint then;
  for (; !interrupt.came(); Rest(interrupt.token())) {
    const auto now = client.GetCluster(kDeadline);
    const TimePoint at = clock.Now();
    const std::string screen = now.ok()
                                   ? TopScreen(*now, before ? &*before : nullptr,
                                               std::chrono::duration<double>(at - then).count())
                                   : std::string(now.status().message()) + "\n";
    std::printf("%s%s", kClear, screen.c_str());
    std::fflush(stdout);
    before = now.ok() ? std::optional(*now) : std::nullopt;
    then = at;
  }
  return 0;
}

int Failed(const absl::Status& why) {
  std::fprintf(stderr, "setu top: %s\n", std::string(why.message()).c_str());
  return 1;
}

}  // namespace

int RunTop(const Arguments& arguments) {
  RouterAccess router;
  bool once = false;
  config::Options options("setu top",
                          "Shows which limit holds each worker of a cluster, every second.",
                          {"setu top", "setu top --once", "setu top --address 10.0.0.1:50051"});
  router.AddTo(options);
  options.Add("once", &once, "print one look and end, as where there is no terminal");
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  const auto target = router.Read();
  if (!target.ok()) return Failed(target.status());
  if (!once && isatty(STDOUT_FILENO)) return Watch(*target);
  InferenceClient client(*target);
  const auto cluster = client.GetCluster(kDeadline);
  if (!cluster.ok()) return Failed(cluster.status());
  std::fputs(TopScreen(*cluster, nullptr, 0).c_str(), stdout);
  return 0;
}

}  // namespace setu::cli
