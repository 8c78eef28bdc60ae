// SPDX-License-Identifier: Apache-2.0
// A message's strings before it is sent: protobuf writes invalid UTF-8 with a complaint of its own
// on stderr, and the router refuses it.
//
//   SETU_RETURN_IF_ERROR(CheckText(request));
#ifndef SETU_SERVICES_CLI_TEXT_CHECK_H_
#define SETU_SERVICES_CLI_TEXT_CHECK_H_

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace setu::cli {

// INVALID_ARGUMENT names the first field, of this message or one inside it, that is not valid
// UTF-8, the byte where that begins, and what to do: "stopping.strings[1] is not valid UTF-8 at
// byte 4 (0xE9); ...".
absl::Status CheckText(const google::protobuf::Message& message);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_TEXT_CHECK_H_
