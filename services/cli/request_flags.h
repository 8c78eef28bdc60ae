// SPDX-License-Identifier: Apache-2.0
// The flags that say what to generate, shared by `generate` and `chat`.
#ifndef SETU_SERVICES_CLI_REQUEST_FLAGS_H_
#define SETU_SERVICES_CLI_REQUEST_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/config/options.h"
#include "services/cli/router_access.h"
#include "setu/v1/inference.pb.h"

namespace setu::cli {

struct RequestFlags {
  RouterAccess router;
  Duration deadline = std::chrono::minutes(10);
  // Absent: the server's default.
  std::optional<int64_t> max_tokens, min_tokens, top_k, seed;
  std::optional<double> temperature, top_p, min_p;
  std::optional<double> repetition_penalty, frequency_penalty, presence_penalty;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

void AddRequestFlags(config::Options& options, RequestFlags* flags);

// sampling, stopping and output of a request; the caller sets the input.
v1::GenerateRequest RequestFrom(const RequestFlags& flags);

// A server's error in the words of this program: sampling.max_tokens is --max-tokens here.
std::string InFlags(absl::string_view message);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_REQUEST_FLAGS_H_
