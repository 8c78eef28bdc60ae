// SPDX-License-Identifier: Apache-2.0
#include "services/cli/text_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "setu/v1/inference.pb.h"

namespace setu::cli {
namespace {

using ::testing::HasSubstr;

std::string Refused(const google::protobuf::Message& message) {
  const absl::Status status = CheckText(message);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CheckText, NamesFieldAndByteWhereverTheStringStands) {
  v1::GenerateRequest text;
  text.set_text("caf\xE9");
  EXPECT_THAT(Refused(text), HasSubstr("text is not valid UTF-8 at byte 3 (0xE9)"));

  v1::GenerateRequest model;
  model.set_model("\xFF");
  EXPECT_THAT(Refused(model), HasSubstr("model is not valid UTF-8 at byte 0 (0xFF)"));

  v1::GenerateRequest stop;
  stop.mutable_stopping()->add_strings("ok");
  stop.mutable_stopping()->add_strings("é\xC3");
  EXPECT_THAT(Refused(stop), HasSubstr("stopping.strings[1] is not valid UTF-8 at byte 2"));

  v1::GenerateRequest chat;
  chat.mutable_chat()->add_messages()->set_content("hello");
  chat.mutable_chat()->add_messages()->set_role("us\x80r");
  EXPECT_THAT(Refused(chat), HasSubstr("chat.messages[1].role is not valid UTF-8 at byte 2"));
}

TEST(CheckText, PassesWhatIsValidAndWhatIsNotThere) {
  v1::GenerateRequest request;
  EXPECT_TRUE(CheckText(request).ok());
  request.set_text("नमस्ते");
  request.mutable_stopping()->add_strings("");
  (*request.mutable_sampling()->mutable_logit_bias())[3] = 1;
  EXPECT_TRUE(CheckText(request).ok());
}

}  // namespace
}  // namespace setu::cli
