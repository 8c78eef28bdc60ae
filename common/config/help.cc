// SPDX-License-Identifier: Apache-2.0
#include "common/config/help.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace setu::config {
namespace {

constexpr size_t kColumns = 100;

std::string Flag(const Entry& entry) {
  if (entry.is_switch()) return absl::StrCat("--[no-]", entry.name());
  return absl::StrCat("--", entry.name(), " ", entry.placeholder());
}

// "  left    text", the text wrapped beside an empty left column.
void AppendRow(std::string& page, const std::string& left, size_t width, const std::string& text) {
  std::string line = absl::StrCat("  ", left);
  line.resize(width + 3, ' ');
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() + 1 + word.size() > kColumns && line.size() > width + 3) {
      absl::StrAppend(&page, line, "\n");
      line.assign(width + 3, ' ');
    }
    absl::StrAppend(&line, " ", word);
  }
  absl::StrAppend(&page, line, "\n");
}

}  // namespace

std::string Render(const Page& page) {
  std::string text = absl::StrCat(page.program, ": ", page.purpose, "\n\nUsage: ", page.program,
                                  " [--option value ...]");
  if (!page.positional.empty()) absl::StrAppend(&text, " ", page.positional);
  absl::StrAppend(&text, "\n\n");
  size_t width = page.positional.size();
  for (const Entry& entry : page.entries) width = std::max(width, Flag(entry).size());
  if (!page.positional.empty()) {
    AppendRow(text, page.positional, width, page.positional_help);
    absl::StrAppend(&text, "\n");
  }
  for (const Entry& entry : page.entries) {
    AppendRow(text, Flag(entry), width, entry.Description());
  }
  AppendRow(text, "--help", width, "this page");
  absl::StrAppend(&text,
                  "\nAn option --some-name may also stand in the environment (SETU_SOME_NAME) or "
                  "in the --config file\n(some-name: ...). Flags win over the environment, the "
                  "environment over the file.\n");
  if (!page.examples.empty()) absl::StrAppend(&text, "\nExamples:\n");
  for (const std::string& example : page.examples) absl::StrAppend(&text, "  ", example, "\n");
  return text;
}

}  // namespace setu::config
