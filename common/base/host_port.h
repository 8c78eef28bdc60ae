// SPDX-License-Identifier: Apache-2.0
// HOST:PORT, as flags and peers write it.
//
//   SETU_ASSIGN_OR_RETURN(const HostPort at, ParseHostPort("[::1]:50051", /*lowest_port=*/1));
//   at.host;  // "::1"
#ifndef SETU_COMMON_BASE_HOST_PORT_H_
#define SETU_COMMON_BASE_HOST_PORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace setu {

struct HostPort {
  std::string host;  // a name, or an address without brackets
  int port = 0;
};

// Looks nothing up. `lowest_port`: 0 where "any free port" makes sense, else 1. INVALID_ARGUMENT
// says what it must be, as "must be ...".
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, int lowest_port);

}  // namespace setu

#endif  // SETU_COMMON_BASE_HOST_PORT_H_
