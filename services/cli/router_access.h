// SPDX-License-Identifier: Apache-2.0
// The flags that say which router to ask, and as whom. Pure but for the file of the token.
//
//   RouterAccess access;
//   access.AddTo(options);
//   SETU_ASSIGN_OR_RETURN(const RouterTarget target, access.Read());
//   InferenceClient client(target);
#ifndef SETU_SERVICES_CLI_ROUTER_ACCESS_H_
#define SETU_SERVICES_CLI_ROUTER_ACCESS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/config/options.h"

namespace setu::cli {

// The token in the file that --token-file names; "" without one. INVALID_ARGUMENT: it has none.
absl::StatusOr<std::string> ReadToken(const std::optional<std::string>& token_file);

struct RouterTarget {
  std::string address;
  std::string token;  // empty: none is sent
};

struct RouterAccess {
  std::string address = "127.0.0.1:50051";
  std::optional<std::string> token_file;

  void AddTo(config::Options& options);
  // As ReadToken.
  absl::StatusOr<RouterTarget> Read() const;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_ROUTER_ACCESS_H_
