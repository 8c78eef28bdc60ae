// SPDX-License-Identifier: Apache-2.0
#include "services/cli/router_access.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/small_file.h"
#include "common/base/status_macros.h"

namespace setu::cli {

absl::StatusOr<std::string> ReadToken(const std::optional<std::string>& token_file) {
  if (!token_file) return "";
  SETU_ASSIGN_OR_RETURN(std::string token, ReadSmallFile("--token-file", *token_file, 4096));
  token = std::string(absl::StripAsciiWhitespace(token));
  const bool one_word = std::all_of(token.begin(), token.end(),
                                    [](unsigned char c) { return absl::ascii_isgraph(c); });
  if (!token.empty() && one_word) return token;
  return absl::InvalidArgumentError(
      absl::StrCat("--token-file ", *token_file,
                   " has no token; it must be one word, as setu token new --out writes it"));
}

void RouterAccess::AddTo(config::Options& options) {
  options.AddAddress("address", &address, "the router, HOST:PORT");
  options.Add("token-file", &token_file, "file of a bearer token, where the router asks for one");
}

absl::StatusOr<RouterTarget> RouterAccess::Read() const {
  SETU_ASSIGN_OR_RETURN(std::string token, ReadToken(token_file));
  return RouterTarget{.address = address, .token = std::move(token)};
}

}  // namespace setu::cli
