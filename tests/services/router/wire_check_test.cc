// SPDX-License-Identifier: Apache-2.0
#include "services/router/wire_check.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "setu/v1/inference.pb.h"

namespace setu::router {
namespace {

std::string Check(std::string_view bytes) {
  return std::string(CheckWire(bytes, *v1::GenerateRequest::descriptor()).message());
}

const google::protobuf::UnknownFieldSet& Unknown(const google::protobuf::Message& message) {
  return message.GetReflection()->GetUnknownFields(message);
}

v1::GenerateRequest Full() {
  v1::GenerateRequest request;
  request.set_model("m");
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role("user");
  message.set_content("h\u00e9 \U0001F600");
  request.mutable_sampling()->set_temperature(0.5f);
  request.mutable_sampling()->set_seed(1ull << 63);
  (*request.mutable_sampling()->mutable_logit_bias())[7] = 1.5f;
  request.mutable_stopping()->add_strings("x");
  request.mutable_stopping()->add_token_ids(3);
  request.mutable_output()->set_echo(true);
  return request;
}

TEST(WireCheck, TakesEveryMessageThatASerializerWrites) {
  EXPECT_EQ(Check(Full().SerializeAsString()), "");
  EXPECT_EQ(Check(""), "");
  v1::GenerateRequest ids;
  for (uint32_t i = 0; i < 1000; ++i) ids.mutable_token_ids()->add_ids(i * i);
  EXPECT_EQ(Check(ids.SerializeAsString()), "");
  EXPECT_EQ(Check("\x1A\x04\x08\x05\x08\x06"), "");  // token_ids.ids, not packed
}

TEST(WireCheck, NamesAFieldThatTheTypeLacks) {
  EXPECT_EQ(Check("\x98\x06\x01"),
            "#99 is not a field of setu.v1.GenerateRequest; what is not supported is refused");
  EXPECT_EQ(Check("\x2A\x03\x98\x06\x01"),
            "sampling.#99 is not a field of setu.v1.Sampling; what is not supported is refused");
  EXPECT_NE(Check(std::string_view("\x00\x01", 2)).find("#0 is not a field"), std::string::npos);
  EXPECT_NE(Check("\x9B\x06").find("#99"), std::string::npos);  // a group
}

TEST(WireCheck, NamesAFieldOfTheWrongWireType) {
  EXPECT_EQ(Check("\x10\x05"), "text has wire type 0; it must be 2");
  EXPECT_EQ(Check("\x2A\x02\x18\x05"), "sampling.temperature has wire type 0; it must be 5");
}

TEST(WireCheck, NamesTextThatIsNotUtf8AndTheByte) {
  EXPECT_EQ(Check("\x12\x03"
                  "ab\xFF"),
            "text is not valid UTF-8 at byte 2");
  EXPECT_EQ(Check("\x22\x07\x0A\x05\x12\x03"
                  "a\xC3"
                  "b"),
            "chat.messages.content is not valid UTF-8 at byte 1");
}

TEST(WireCheck, NamesAFieldThatEndsTooEarly) {
  EXPECT_EQ(Check("\x12\x05"
                  "ab"),
            "text ends too early");
  EXPECT_EQ(Check("\x2A\x05\x1D"), "sampling ends too early");
  EXPECT_EQ(Check("\x2A\x01\x1D"), "sampling.temperature ends too early");
}

// Whatever the bytes are, an answer comes; and the parser passes over nothing in what passes here.
TEST(WireCheck, NothingIsLeftOverInMutatedBytesThatPass) {
  const std::string whole = Full().SerializeAsString();
  int taken = 0;
  for (uint32_t seed = 0; seed < 20'000; ++seed) {
    std::mt19937 random(seed);
    std::string bytes = whole.substr(0, random() % 4 == 0 ? random() % whole.size() : whole.size());
    for (uint32_t i = random() % 4; i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (!Check(bytes).empty()) continue;
    v1::GenerateRequest request;
    if (!request.ParseFromString(bytes)) continue;  // the inside of a packed field
    ++taken;
    ASSERT_TRUE(Unknown(request).empty()) << "seed " << seed;
    ASSERT_TRUE(Unknown(request.sampling()).empty()) << "seed " << seed;
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace setu::router
