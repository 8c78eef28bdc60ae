// SPDX-License-Identifier: Apache-2.0
#include "services/router/token_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/config/sources.h"

namespace setu::router {
namespace {

using config::Assignment;

constexpr size_t kMostNameBytes = 64;
constexpr int64_t kMostWeight = 1000;
constexpr int64_t kMostRequests = 1'000'000;
constexpr int64_t kMostTokensPerMinute = 1'000'000'000'000;

absl::Status Refuse(const Assignment& line, absl::string_view why) {
  const std::string place = line.where.substr(0, line.where.size() - line.name.size());
  return absl::InvalidArgumentError(absl::StrCat(place, why));
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
                  c == '.';
         });
}

absl::StatusOr<int64_t> Number(const Assignment& line, absl::string_view setting,
                               absl::string_view text, int64_t most) {
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= 1 && number <= most) return number;
  return Refuse(line, absl::StrCat(setting, " must be 1 to ", most));
}

absl::StatusOr<Tenant::Limits> ReadLimits(const Assignment& line) {
  Tenant::Limits limits;
  for (const std::string& setting : line.values) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(setting, absl::MaxSplits('=', 1));
    const auto& [name, text] = parts;
    if (name == "weight") {
      SETU_ASSIGN_OR_RETURN(const int64_t weight, Number(line, name, text, kMostWeight));
      limits.weight = static_cast<uint32_t>(weight);
    } else if (name == "requests") {
      SETU_ASSIGN_OR_RETURN(limits.requests, Number(line, name, text, kMostRequests));
    } else if (name == "tokens-per-minute") {
      SETU_ASSIGN_OR_RETURN(limits.tokens_per_minute,
                            Number(line, name, text, kMostTokensPerMinute));
    } else {
      return Refuse(line, "a tenant has weight=N, requests=N and tokens-per-minute=N, or []");
    }
  }
  return limits;
}

absl::StatusOr<TokenFile::Token> ReadToken(const Assignment& line, const rpc::TokenDigest& digest) {
  TokenFile::Token token{.digest = digest, .tenant = {}};
  if (line.values.empty() || line.values.size() > 2) {
    return Refuse(line, "a token has its tenant and its priority: [TENANT, normal]");
  }
  token.tenant = line.values[0];
  if (line.values.size() == 1 || line.values[1] == "normal") return token;
  if (line.values[1] == "high") {
    token.priority = Priority::kHigh;
  } else if (line.values[1] == "low") {
    token.priority = Priority::kLow;
  } else {
    return Refuse(line, "a token's priority must be high, normal or low");
  }
  return token;
}

}  // namespace

absl::StatusOr<TokenFile> ParseTokenFile(const std::string& path, const std::string& text) {
  const auto lines = config::ParseYaml(path, text);
  if (!lines.ok()) {
    const absl::string_view place = lines.status().message();
    return absl::InvalidArgumentError(
        absl::StrCat(place.substr(0, place.find(": ", path.size()) + 2),
                     "it must be a YAML map of names, each once, to lists"));
  }
  TokenFile file;
  std::vector<const Assignment*> token_lines;
  for (const Assignment& line : *lines) {
    if (const std::optional<rpc::TokenDigest> digest = rpc::DigestFromHex(line.name)) {
      SETU_ASSIGN_OR_RETURN(TokenFile::Token token, ReadToken(line, *digest));
      file.tokens.push_back(std::move(token));
      token_lines.push_back(&line);
    } else if (IsName(line.name) && !absl::StartsWith(line.name, "setu-")) {
      SETU_ASSIGN_OR_RETURN(file.tenants[line.name], ReadLimits(line));
    } else {
      return Refuse(line, absl::StrCat("a key must be a tenant's name (at most ", kMostNameBytes,
                                       " letters, digits, -, _ and ., not setu-...) or the SHA-256 "
                                       "of a token in 64 small hex digits, as setu token new "
                                       "writes it"));
    }
  }
  for (size_t i = 0; i < file.tokens.size(); ++i) {
    if (file.tenants.contains(file.tokens[i].tenant)) continue;
    return Refuse(*token_lines[i], "its tenant has no line of its own; add one: TENANT: []");
  }
  if (file.tokens.size() <= TokenFile::kMostTokens) return file;
  return absl::InvalidArgumentError(absl::StrCat(path, ": it has ", file.tokens.size(),
                                                 " tokens; at most ", TokenFile::kMostTokens,
                                                 " are allowed"));
}

}  // namespace setu::router
