// SPDX-License-Identifier: Apache-2.0
// A file of tokens gives tenants and tokens within their limits, or an error that names its line
// and repeats nothing of the file: what stands there may be a token.
#include "services/router/token_file.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/base/check.h"

namespace setu::router {
namespace {

constexpr char kPath[] = "t";
constexpr size_t kSecretBytes = 18;  // longer than any word of our own sentences

void CheckError(const absl::Status& error, std::string_view text) {
  SETU_CHECK(error.code() == absl::StatusCode::kInvalidArgument, "a wrong file is known so");
  SETU_CHECK(absl::StartsWith(error.message(), "t:"), "an error names its place");
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && absl::ascii_isalnum(static_cast<unsigned char>(text[at]))) continue;
    const std::string_view word = text.substr(begin, at - begin);
    begin = at + 1;
    SETU_CHECK(word.size() < kSecretBytes ||
                   !absl::StrContains(error.message(), {word.data(), word.size()}),
               "an error repeats nothing that may be a token");
  }
}

void CheckFile(const std::string& text) {
  const auto file = ParseTokenFile(kPath, text);
  if (!file.ok()) return CheckError(file.status(), text);
  SETU_CHECK(file->tokens.size() <= TokenFile::kMostTokens, "tokens are few");
  for (const TokenFile::Token& token : file->tokens) {
    SETU_CHECK(file->tenants.contains(token.tenant), "a token's tenant is there");
  }
  for (const auto& [name, limits] : file->tenants) {
    SETU_CHECK(!name.empty() && name.size() <= 64 && !absl::StartsWith(name, "setu-"),
               "a tenant has a name");
    SETU_CHECK(limits.weight >= 1 && limits.weight <= 1000, "a weight is in its range");
    SETU_CHECK(!limits.requests || *limits.requests >= 1, "requests are in their range");
    SETU_CHECK(!limits.tokens_per_minute || *limits.tokens_per_minute >= 1,
               "tokens a minute are in their range");
  }
}

}  // namespace
}  // namespace setu::router

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setu::router::CheckFile({reinterpret_cast<const char*>(data), size});
  return 0;
}
