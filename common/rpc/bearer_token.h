// SPDX-License-Identifier: Apache-2.0
// Bearer tokens: how they are made, sent and recognised. A server keeps digests alone; a token
// never reaches a log or an error.
//
//   Authorize(context, token);                         // a client, before its call
//   std::optional<std::string> token = BearerOf(context.client_metadata());
//   if (token && SameDigest(DigestOf(*token), known)) ...
#ifndef SETU_COMMON_RPC_BEARER_TOKEN_H_
#define SETU_COMMON_RPC_BEARER_TOKEN_H_

#include <grpcpp/grpcpp.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace setu::rpc {

using TokenDigest = std::array<uint8_t, 32>;  // SHA-256

// "setu-" and 256 random bits that may stand in a header.
std::string NewToken();
TokenDigest DigestOf(absl::string_view token);
// As long for digests that differ at once as for equal ones.
bool SameDigest(const TokenDigest& a, const TokenDigest& b);
std::string HexOf(const TokenDigest& digest);  // 64 small digits
std::optional<TokenDigest> DigestFromHex(absl::string_view hex);

// What "authorization: Bearer ..." says; nullopt where it is not said, or more than once.
std::optional<std::string> BearerOf(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);
// Says it. Without a token it says nothing.
void Authorize(grpc::ClientContext& context, const std::string& token);

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_BEARER_TOKEN_H_
