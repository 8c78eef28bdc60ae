// SPDX-License-Identifier: Apache-2.0
// Hostile templates: each must end soon, as text or as an error, whatever it tries to use up.
#include "common/chat/meter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

std::string Times(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Meter, StepsDepthAndSizes) {
  Meter meter({.steps = 10, .depth = 2, .output_bytes = 5});
  EXPECT_TRUE(meter.Steps(10).ok());
  EXPECT_FALSE(meter.Steps(1).ok());
  EXPECT_FALSE(meter.Steps(~size_t{0}).ok());
  EXPECT_TRUE(meter.Depth(2).ok());
  EXPECT_FALSE(meter.Depth(3).ok());
  EXPECT_TRUE(meter.TextSize(5).ok());
  EXPECT_FALSE(meter.TextSize(6).ok());
}

TEST(Meter, WorkIsBounded) {
  const std::string doubling_list =
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
  for (const std::string& source : std::vector<std::string>{
           "{{ range(1000000000)|length }}",
           "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
           "{{ 'a' * 1000000000000 }}",
           "{{ [1] * 1000000000000 }}",
           "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}"
           "{% endfor %}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}"
           "{% endfor %}",
           doubling_list + "{{ ns.x|tojson }}",
           doubling_list + "{{ ns.x }}",
           doubling_list + "{{ ns.x == [ns.x[0], ns.x[1]] }}",
           "{% set ns = namespace(x=1) %}{% for i in range(100) %}{% set ns.x = [ns.x] %}"
           "{% endfor %}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
           "{% set a = 'a' * 4000000 %}{% for i in range(1000) %}{% set b = a|upper %}{% endfor %}",
           "{% set a = 'a' * 2000000 %}{{ a|replace('a', a) }}",
           "{% set a = 'a' * 2000000 %}{{ a.replace('', a) }}",
           "{% set a = 'a' * 2000000 %}{{ a|list|join(a) }}",
           "{% set a = 'a' * 2000000 %}{{ ('a' * 1000000 + 'b') in a }}",
           "{% set a = 'a' * 2000000 %}{{ a.strip('b' * 2000000 + 'a') }}",
           "{{ 2 ** 63 }}",
           "{{ 9223372036854775807 + 1 }}",
           "{{ (-9223372036854775807 - 1) // -1 }}",
           "{{ [1]|tojson(indent=1000000000) }}",
           "{{ range(0, 9223372036854775807, 1) }}",
           Times("{% if true %}", 100) + Times("{% endif %}", 100),
           "{{ " + Times("(", 10000) + "1" + Times(")", 10000) + " }}",
           "{{ " + Times("[", 10000) + Times("]", 10000) + " }}",
           "{{ " + Times("not ", 10000) + "1 }}",
           "{{ " + Times("1 if 1 else ", 5000) + "1 }}",
       }) {
    EXPECT_FALSE(Error(source).empty());
  }
}

TEST(Meter, LongButFlatIsFine) {
  EXPECT_EQ(Render("{{ " + Times("1 + ", 10000) + "1 }}"), "10001");
  EXPECT_EQ(Render("{{ " + Times("- ", 10000) + "1 }}"), "1");
  EXPECT_EQ(Render("{{ 'a'" + Times("|upper", 5000) + " }}"), "A");
  EXPECT_EQ(Render("{{ x is defined" + Times(" or true", 5000) + " }}"), "True");
  EXPECT_EQ(Render(Times("{% if 0 %}{% endif %}", 2000)), "");
  EXPECT_EQ(Render("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me.me is defined }}"),
            "True");
  EXPECT_EQ(Render("{% for x in range(2, 1, 9223372036854775807) %}{% endfor %}"
                   "{{ 'abc'[::9223372036854775807] }}{{ 'abc'[::-9223372036854775807] }}"),
            "ac");
}

TEST(Meter, TheSourceIsBounded) {
  EXPECT_NE(Error(std::string((1 << 16) + 1, ' ')).find("65537 bytes; at most 65536"),
            std::string::npos);
}

TEST(Meter, TheOutputIsBounded) {
  EXPECT_NE(Error("{% for i in range(9) %}12345{% endfor %}", {}, {.output_bytes = 44})
                .find("more than 44 bytes"),
            std::string::npos);
}

// Mutated templates never crash, never pass a limit, and fail with a line.
TEST(Meter, MutatedTemplatesStayWithinTheLimits) {
  const nlohmann::json cases = ReadCases()["cases"];
  const Limits limits = {.steps = 20'000, .depth = 32, .output_bytes = 1 << 14};
  const std::vector<std::string> scraps = {
      "{{", "}}",   "{%", "%}",        "{#",     "-",        "|",  ".",     "(",
      ")",  "[",    "]",  "'",         "\\",     "for",      "if", "endif", "set",
      "~",  "\xFF", "\n", "range(99)", "* 9999", "\xE2\x80", "\0"};
  std::mt19937 random(23);
  for (int round = 0; round < 6000; ++round) {
    const nlohmann::json& test = cases[random() % cases.size()];
    std::string source = test["template"];
    for (size_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = source.empty() ? 0 : random() % source.size();
      const std::string other = cases[random() % cases.size()]["template"];
      switch (random() % 4) {
        case 0:
          source.erase(at, 1 + random() % 8);
          break;
        case 1:
          source.insert(at, scraps[random() % scraps.size()]);
          break;
        case 2:
          source.insert(at, other.substr(0, random() % 40));
          break;
        default:
          source = source.substr(0, at) + other.substr(other.size() / 2);
      }
    }
    const auto rendered = TryRender(source, ReadInput(test["input"]), limits);
    if (rendered.ok()) {
      EXPECT_LE(rendered->Text().size(), limits.output_bytes);
    } else {
      EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument) << source;
      EXPECT_EQ(rendered.status().message().substr(0, 19), "chat template line ") << source;
    }
  }
}

}  // namespace
}  // namespace setu::chat
