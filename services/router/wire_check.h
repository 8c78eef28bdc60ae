// SPDX-License-Identifier: Apache-2.0
// What a protobuf parser would pass over in silence: a serialized message with a field that its
// type lacks, a value of the wrong wire type, or text that is not UTF-8 is refused by name, so that
// nothing is accepted and ignored. Reads the bytes once, copies nothing.
//
//   SETU_RETURN_IF_ERROR(CheckWire(bytes, *v1::GenerateRequest::descriptor()));
#ifndef SETU_SERVICES_ROUTER_WIRE_CHECK_H_
#define SETU_SERVICES_ROUTER_WIRE_CHECK_H_

#include <google/protobuf/descriptor.h>

#include <string_view>

#include "absl/status/status.h"

namespace setu::router {

// INVALID_ARGUMENT names the field by its path, such as "chat.messages.content". The schema must
// have no message that contains itself: it bounds the depth.
absl::Status CheckWire(std::string_view bytes, const google::protobuf::Descriptor& type);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_WIRE_CHECK_H_
