// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/config/options.h"
#include "common/config/sources.h"

namespace setu::config {
namespace {

// Kubernetes and Docker links set these for a service of each name: SETU_ROUTER_SERVICE_HOST,
// SETU_ROUTER_PORT=tcp://10.0.0.1:50051, SETU_ROUTER_PORT_50051_TCP_ADDR (kubernetes.io/docs,
// "Environment variables" of a Service).
bool IsInjected(const std::string& key, const std::string& value) {
  if (absl::StrContains(key, "_SERVICE_HOST") || absl::StrContains(key, "_SERVICE_PORT")) {
    return true;
  }
  if (!absl::StrContains(key, "_PORT")) return false;
  return absl::StrContains(value, "://") || absl::StrContains(key, "_TCP") ||
         absl::StrContains(key, "_UDP") || absl::StrContains(key, "_SCTP");
}

}  // namespace

std::vector<Assignment> ReadEnvironment(const std::vector<std::string>& environment,
                                        Logger& logger) {
  std::vector<Assignment> assignments;
  for (const std::string& variable : environment) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = variable.substr(0, equals);
    std::string value = variable.substr(equals + 1);
    if (!absl::StartsWith(key, "SETU_") || absl::StartsWith(key, "SETU_TEST_")) continue;
    if (IsInjected(key, value)) {
      logger.Info(absl::StrCat("ignored ", key, ": an orchestrator sets it for a service"));
      continue;
    }
    assignments.push_back({key, {std::move(value)}, key});
  }
  return assignments;
}

std::vector<std::string> ProcessEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  return environment;
}

}  // namespace setu::config
