// SPDX-License-Identifier: Apache-2.0
#include "services/router/callers.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/small_file.h"
#include "common/base/status_macros.h"

namespace setu::router {
namespace {

constexpr size_t kLeastSecretBytes = 32;
constexpr size_t kMostSecretBytes = 4096;

absl::StatusOr<std::string> ReadText(const std::string& path) {
  return ReadSmallFile("--auth-tokens file", path, TokenFile::kMostBytes);
}

}  // namespace

uint64_t CacheSalt(absl::string_view secret, absl::string_view tenant) {
  std::array<uint8_t, EVP_MAX_MD_SIZE> code;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const uint8_t*>(tenant.data()), tenant.size(), code.data(), nullptr);
  uint64_t salt = 0;
  for (size_t i = 0; i < sizeof salt; ++i) salt = salt << 8 | code[i];
  return salt;
}

absl::StatusOr<std::string> ReadClusterSecret(const std::string& path) {
  // const: g++ 12 sees an overflow where a string that is known to be long is moved.
  const auto secret = ReadSmallFile("--cluster-secret", path, kMostSecretBytes);
  if (!secret.ok() || secret->size() >= kLeastSecretBytes) return secret;
  return absl::InvalidArgumentError(absl::StrCat(
      "--cluster-secret ", path, " has ", secret->size(), " bytes; it must have at least ",
      kLeastSecretBytes, "; make one: head -c 32 /dev/urandom > FILE"));
}

absl::StatusOr<std::unique_ptr<Callers>> Callers::FromFile(std::string path, std::string secret,
                                                           Logger& logger) {
  std::unique_ptr<Callers> callers(new Callers(std::move(path), std::move(secret), logger));
  SETU_ASSIGN_OR_RETURN(callers->seen_, ReadText(callers->path_));
  SETU_RETURN_IF_ERROR(callers->Take(callers->seen_));
  return callers;
}

// All are compared, so that the time says nothing about how near a token comes.
absl::StatusOr<Caller> Callers::Identify(const std::optional<std::string>& token) {
  std::shared_ptr<const std::vector<Known>> known;
  {
    const std::lock_guard lock(mutex_);
    known = known_;
  }
  const rpc::TokenDigest digest = rpc::DigestOf(token.value_or(""));
  const Known* found = nullptr;
  for (const Known& one : *known) {
    if (rpc::SameDigest(one.digest, digest)) found = &one;
  }
  if (token && found != nullptr) return found->caller;
  ++refused_;
  return absl::UnauthenticatedError("no valid token; send one: authorization: Bearer TOKEN");
}

void Callers::Look() {
  const auto text = ReadText(path_);
  if (text.ok() && std::exchange(seen_, *text) != *text) return;
  const absl::Status taken = text.ok() ? Take(*text) : text.status();
  stale_ = !taken.ok();
  const std::string wrong(taken.message());
  if (wrong == wrong_) return;
  wrong_ = wrong;
  if (!taken.ok()) {
    logger_.Error(absl::StrCat("the tokens stay as they were: ", wrong));
  } else {
    logger_.Info("the file of tokens is right again");
  }
}

absl::Status Callers::Take(const std::string& text) {
  if (known_ != nullptr && text == text_) return absl::OkStatus();
  SETU_ASSIGN_OR_RETURN(const TokenFile file, ParseTokenFile(path_, text));
  text_ = text;
  Take(file);
  logger_.Info(absl::StrCat("tokens: ", file.tokens.size(), " of ", file.tenants.size(),
                            " tenants, from ", path_));
  return absl::OkStatus();
}

// A tenant that stays keeps its number and what it has under way.
void Callers::Take(const TokenFile& file) {
  std::erase_if(tenants_, [&](const auto& entry) { return !file.tenants.contains(entry.first); });
  for (const auto& [name, limits] : file.tenants) {
    std::shared_ptr<Tenant>& tenant = tenants_[name];
    if (tenant) {
      tenant->SetLimits(limits);
    } else {
      tenant = std::make_shared<Tenant>(next_number_++, CacheSalt(secret_, name), limits);
    }
  }
  auto known = std::make_shared<std::vector<Known>>();
  for (const TokenFile::Token& token : file.tokens) {
    known->push_back({token.digest, {tenants_.at(token.tenant), token.priority}});
  }
  const std::lock_guard lock(mutex_);
  known_ = std::move(known);
}

Callers::Figures Callers::figures() const {
  const std::lock_guard lock(mutex_);
  return {.refused = refused_, .tokens = known_->size(), .stale = stale_};
}

}  // namespace setu::router
