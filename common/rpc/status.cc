// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/status.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"

namespace setu::rpc {
namespace {

using google::protobuf::internal::WireFormatLite;

// google.rpc.Status {int32 code = 1; string message = 2; repeated Any details = 3;}, written by
// hand because its generated code is not packaged:
// https://github.com/googleapis/googleapis/blob/master/google/rpc/status.proto
std::string EncodeRpcStatus(int code, const std::string& message,
                            const google::protobuf::Any& detail) {
  std::string bytes;
  google::protobuf::io::StringOutputStream sink(&bytes);
  google::protobuf::io::CodedOutputStream out(&sink);
  WireFormatLite::WriteInt32(1, code, &out);
  WireFormatLite::WriteString(2, message, &out);
  WireFormatLite::WriteBytes(3, detail.SerializeAsString(), &out);
  out.Trim();
  return bytes;
}

// google.rpc.RetryInfo {google.protobuf.Duration retry_delay = 1;}, in error_details.proto there.
google::protobuf::Any RetryInfo(std::chrono::milliseconds delay) {
  google::protobuf::Duration duration;
  duration.set_seconds(delay.count() / 1000);
  duration.set_nanos(static_cast<int32_t>(delay.count() % 1000 * 1'000'000));
  google::protobuf::Any any;
  any.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  google::protobuf::io::StringOutputStream sink(any.mutable_value());
  google::protobuf::io::CodedOutputStream out(&sink);
  WireFormatLite::WriteBytes(1, duration.SerializeAsString(), &out);
  out.Trim();
  return any;
}

}  // namespace

// Both enums name the same codes by the same numbers.
grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

absl::Status ToAbsl(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::Status Exhausted(const std::string& message, Duration retry_after,
                       grpc::ServerContextBase& context) {
  const auto delay = std::max(std::chrono::ceil<std::chrono::milliseconds>(retry_after),
                              std::chrono::milliseconds(0));
  context.AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(delay.count()));
  return grpc::Status(
      grpc::StatusCode::RESOURCE_EXHAUSTED, message,
      EncodeRpcStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, message, RetryInfo(delay)));
}

}  // namespace setu::rpc
