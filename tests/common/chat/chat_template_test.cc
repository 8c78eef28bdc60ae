// SPDX-License-Identifier: Apache-2.0
// Whole templates against what Jinja makes of them (cases.json), and whose text is whose.
#include "common/chat/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/utf8.h"
#include "common/model/gguf.h"
#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(ChatTemplate, RendersAsJinjaDoes) {
  const nlohmann::json data = ReadCases();
  ASSERT_GE(data["cases"].size(), 190u);
  for (const auto& test : data["cases"]) {
    const std::string source = test["template"];
    const auto rendered = TryRender(source, ReadInput(test["input"]));
    if (test.contains("error")) {
      EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument) << source;
      EXPECT_EQ(rendered.status().message().substr(0, 19), "chat template line ") << source;
    } else {
      ASSERT_TRUE(rendered.ok()) << source << "\n" << rendered.status();
      EXPECT_EQ(rendered->Text(), test["output"].get<std::string>()) << source;
    }
  }
}

std::string ModelPath() {
  if (const char* path = std::getenv("SETU_TEST_MODEL")) return path;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = cache ? cache : std::string(home ? home : "") + "/.cache";
  return folder + "/setu/models/SmolLM2-135M-Instruct-Q4_1.gguf";
}

TEST(ChatTemplate, RendersTheDefaultModelsOwn) {
  const auto file = model::GgufFile::Open(ModelPath());
  ASSERT_TRUE(file.ok()) << file.status() << "; fetch it with tests/run.sh";
  const auto source = (*file)->String("tokenizer.chat_template");
  ASSERT_TRUE(source.ok()) << source.status();
  const nlohmann::json data = ReadCases();
  ASSERT_EQ(data["default_model"].size(), 8u);
  for (const auto& test : data["default_model"]) {
    EXPECT_EQ(Render(*source, ReadInput(test)), test["output"].get<std::string>());
  }
}

// Bytes of the private use area stand for what users write; no template has them.
TEST(ChatTemplate, UserTextIsNeverTemplateText) {
  const std::string mark = "\uE001";
  const nlohmann::json data = ReadCases();
  size_t checked = 0;
  for (const auto& test : data["cases"]) {
    ChatInput input = ReadInput(test["input"]);
    for (Message& message : input.messages) {
      // Between letters, so that no filter strips or escapes it.
      std::string marked;
      for (char c : message.content) {
        marked += c;
        if (c == ' ' || c == 'e' || c == '\n') marked += mark;
      }
      message.content = marked + mark;
    }
    const auto rendered = TryRender(test["template"].get<std::string>(), input);
    if (!rendered.ok()) continue;
    ++checked;
    for (size_t i = 0; i < rendered->pieces.size(); ++i) {
      const Piece& piece = rendered->pieces[i];
      if (!piece.from_user) {
        EXPECT_EQ(piece.text.find(mark), std::string::npos) << test["template"] << piece.text;
      }
      if (i > 0) {
        EXPECT_NE(piece.from_user, rendered->pieces[i - 1].from_user);
      }
      EXPECT_FALSE(piece.text.empty());
    }
  }
  EXPECT_GT(checked, 140u);
}

std::vector<std::string> UserTexts(std::string_view source) {
  const auto rendered = TryRender(source, {.messages = {{"user", " <|im_end|> "}}});
  EXPECT_TRUE(rendered.ok()) << rendered.status() << source;
  std::vector<std::string> texts;
  for (const Piece& piece : rendered->pieces) {
    if (piece.from_user) texts.push_back(piece.text);
  }
  return texts;
}

TEST(ChatTemplate, OriginSurvivesEveryChange) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(UserTexts("{{ 'a' + messages[0].content + 'b' }}"), (Texts{" <|im_end|> "}));
  for (const char* change :
       {"|trim", ".strip()", "|replace(' ', '')", "[1:-1]", ".split()[0]", "|trim|lower",
        "|list|join|trim", "[::-1][::-1]|trim", ".replace(' ', '')", "|string|trim"}) {
    EXPECT_EQ(UserTexts("x{{ messages[0].content" + std::string(change) + " }}y"),
              (Texts{"<|im_end|>"}))
        << change;
  }
  EXPECT_EQ(UserTexts("{% set x %}a{{ messages[0].content }}b{% endset %}{{ x|upper }}"),
            (Texts{" <|IM_END|> "}));
  EXPECT_EQ(UserTexts("{% macro m(t) %}({{ t }}){% endmacro %}{{ m(messages[0].content)|trim }}"),
            (Texts{" <|im_end|> "}));
  EXPECT_EQ(UserTexts("{{ messages|tojson }}"), (Texts{"user", " <|im_end|> "}));
  EXPECT_EQ(UserTexts("{{ messages[0] }}"), (Texts{"user", " <|im_end|> "}));
  EXPECT_EQ(UserTexts("{{ 'aXb'|replace('X', messages[0].role) }}"), (Texts{"user"}));
  EXPECT_EQ(UserTexts("{{ '<|im_end|>' }}{{ messages|length }}"), Texts{});
}

TEST(ChatTemplate, ErrorsNameLineAndConstruct) {
  EXPECT_EQ(Error("a\n{{ x|nofilter }}"),
            "chat template line 2: 'x': filter 'nofilter' is not known");
  EXPECT_EQ(Error("\n\n{% include 'x' %}"),
            "chat template line 3: statement 'include' is not supported here");
  EXPECT_EQ(Error("{{ strftime_now('%Y') }}"),
            "chat template line 1: 'strftime_now': cannot call an undefined value");
  EXPECT_EQ(Error("{% if true %}\n{{ raise_exception('roles must alternate') }}{% endif %}"),
            "chat template line 2: raised: roles must alternate");
  EXPECT_EQ(Error("{% for x in y %}\n"),
            "chat template line 1: expected 'endfor', found 'the end of the template'");
}

TEST(ChatTemplate, MessagesAreCutBetweenCharacters) {
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "€";
  for (const char* start : {"", "x", "xx"}) {
    const std::string quoted = "'" + (start + euros) + "'";
    for (const std::string& source :
         {"{{ raise_exception(" + quoted + ") }}", "{{ 1 " + quoted + " }}"}) {
      const std::string error = Error(source);
      EXPECT_NE(error.find("€"), std::string::npos) << error;
      EXPECT_EQ(ValidUtf8Prefix(error), error.size()) << error;
    }
  }
}

TEST(ChatTemplate, MessagesAreShortHoweverLongANameIs) {
  const std::string name(10'000, 'n');
  for (const std::string& source :
       {"{{ 1|" + name + " }}", "{{ 1 is " + name + " }}", "{{ " + name + "() }}",
        "{% " + name + " %}", "{{ " + std::string(10'000, '9') + " }}"}) {
    EXPECT_LT(Error(source).size(), 500u) << source;
  }
}

TEST(ChatTemplate, ASourceThatIsNoUtf8IsRefusedByLine) {
  EXPECT_EQ(Error("a\n\xC3("), "chat template line 2: is not valid UTF-8");
  EXPECT_EQ(Error("{{ '\xFF' }}"), "chat template line 1: is not valid UTF-8");
}

TEST(ChatTemplate, ATemplateRendersAgainAndAgain) {
  const auto chat = ChatTemplate::Parse(
      "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
      "{{ ns.n }}");
  ASSERT_TRUE(chat.ok());
  for (int round = 0; round < 3; ++round) {
    const auto rendered = (*chat)->Render({.messages = {{"a", "b"}, {"c", "d"}}});
    ASSERT_TRUE(rendered.ok());
    EXPECT_EQ(rendered->Text(), "2");
  }
}

}  // namespace
}  // namespace setu::chat
