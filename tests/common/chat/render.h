// SPDX-License-Identifier: Apache-2.0
// Renders templates for tests.
#ifndef SETU_TESTS_COMMON_CHAT_RENDER_H_
#define SETU_TESTS_COMMON_CHAT_RENDER_H_

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/chat/chat_template.h"

namespace setu::chat {

inline absl::StatusOr<RenderedChat> TryRender(std::string_view source, const ChatInput& input = {},
                                              const Limits& limits = {}) {
  const auto chat = ChatTemplate::Parse(source, limits);
  if (!chat.ok()) return chat.status();
  return (*chat)->Render(input);
}

inline std::string Render(std::string_view source, const ChatInput& input = {}) {
  const auto rendered = TryRender(source, input);
  EXPECT_TRUE(rendered.ok()) << rendered.status() << "\n" << source;
  return rendered.ok() ? rendered->Text() : "";
}

// The message of the error that parsing or rendering ends with.
inline std::string Error(std::string_view source, const ChatInput& input = {},
                         const Limits& limits = {}) {
  const auto rendered = TryRender(source, input, limits);
  EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument) << source.substr(0, 200);
  return std::string(rendered.status().message());
}

inline ChatInput ReadInput(const nlohmann::json& json) {
  ChatInput input;
  for (const auto& message : json["messages"]) {
    input.messages.push_back({message["role"], message["content"]});
  }
  input.add_generation_prompt = json["add_generation_prompt"];
  input.bos_token = json.value("bos_token", "");
  input.eos_token = json.value("eos_token", "");
  return input;
}

inline nlohmann::json ReadCases() {
  std::ifstream in("tests/common/chat/cases.json");
  EXPECT_TRUE(in.good());
  return nlohmann::json::parse(in);
}

}  // namespace setu::chat

#endif  // SETU_TESTS_COMMON_CHAT_RENDER_H_
