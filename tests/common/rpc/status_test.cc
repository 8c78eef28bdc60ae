// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/status.h"

#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/str_cat.h"

namespace setu::rpc {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;

TEST(StatusTest, KeepsCodeAndMessageBothWays) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "what went wrong");
    const grpc::Status over = ToGrpc(status);
    EXPECT_EQ(over.error_code(), code);
    EXPECT_EQ(over.error_message(), "what went wrong");
    EXPECT_EQ(ToAbsl(over), status);
  }
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(ToAbsl(grpc::Status::OK).ok());
}

TEST(StatusTest, ExhaustedCarriesRetryInfo) {
  grpc::CallbackServerContext context;
  const grpc::Status status = Exhausted("queue full", 1250ms, context);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "queue full");
  // google.rpc.Status {8, "queue full", [Any {type url, RetryInfo {Duration {1, 250000000}}}]}
  const std::string url = "type.googleapis.com/google.rpc.RetryInfo";
  const std::string duration("\x08\x01\x10\x80\xe5\x9a\x77", 7);
  const std::string any =
      absl::StrCat("\x0a", std::string(1, url.size()), url, "\x12\x09\x0a\x07", duration);
  const std::string expected =
      absl::StrCat("\x08\x08\x12\x0aqueue full\x1a", std::string(1, any.size()), any);
  EXPECT_EQ(status.error_details(), expected);
}

TEST(StatusTest, ExhaustedRoundsTheDelayUp) {
  grpc::CallbackServerContext context;
  EXPECT_NE(Exhausted("full", 1us, context).error_details().find("\x10\xc0\x84\x3d"),  // 1000000
            std::string::npos);
}

}  // namespace
}  // namespace setu::rpc
