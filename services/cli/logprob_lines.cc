// SPDX-License-Identifier: Apache-2.0
#include "services/cli/logprob_lines.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace setu::cli {
namespace {

constexpr absl::string_view kReplacement = "\uFFFD";  // what Detokenize puts for no whole character

std::string Shown(uint32_t id, const std::map<uint32_t, std::string>& texts) {
  const auto found = texts.find(id);
  const bool has_text = found != texts.end() && !found->second.empty() &&
                        !absl::StrContains(found->second, kReplacement);
  if (!has_text) return absl::StrCat("#", id);
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(found->second), "\"");
}

}  // namespace

std::set<uint32_t> IdsOf(const v1::Delta& tokens) {
  std::set<uint32_t> ids(tokens.token_ids().begin(), tokens.token_ids().end());
  for (const v1::TokenLogprobs& token : tokens.logprobs()) {
    for (const v1::TopLogprob& top : token.top()) ids.insert(top.token_id());
  }
  return ids;
}

std::string LogprobLines(const v1::Delta& tokens, const std::map<uint32_t, std::string>& texts) {
  std::string lines = "   logprob  token (likeliest)\n";
  for (int i = 0; i < std::min(tokens.token_ids_size(), tokens.logprobs_size()); ++i) {
    const v1::TokenLogprobs& token = tokens.logprobs(i);
    absl::StrAppendFormat(&lines, "%10.3f  %s", token.logprob(), Shown(tokens.token_ids(i), texts));
    const char* before = " (";
    for (const v1::TopLogprob& top : token.top()) {
      absl::StrAppendFormat(&lines, "%s%s %.3f", before, Shown(top.token_id(), texts),
                            top.logprob());
      before = ", ";
    }
    absl::StrAppend(&lines, token.top().empty() ? "\n" : ")\n");
  }
  return lines;
}

}  // namespace setu::cli
