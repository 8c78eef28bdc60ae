// SPDX-License-Identifier: Apache-2.0
// Who calls: from a bearer token to a tenant, by the file of --auth-tokens.
//
//   SETU_ASSIGN_OR_RETURN(auto callers, Callers::FromFile(path, secret, logger));
//   absl::StatusOr<Caller> caller = callers->Identify(rpc::BearerOf(context.client_metadata()));
//   callers->Look();     // every second or so: a change counts from the second look at it
#ifndef SETU_SERVICES_ROUTER_CALLERS_H_
#define SETU_SERVICES_ROUTER_CALLERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/logging/logger.h"
#include "common/rpc/bearer_token.h"
#include "services/router/tenant.h"
#include "services/router/token_file.h"

namespace setu::router {

// Names a tenant's part of the prefix caches: the first 8 bytes of HMAC-SHA256(secret, tenant).
uint64_t CacheSalt(absl::string_view secret, absl::string_view tenant);

// The bytes of --cluster-secret, 32 to 4096. INVALID_ARGUMENT says how to make one.
absl::StatusOr<std::string> ReadClusterSecret(const std::string& path);

class Callers {
 public:
  struct Figures {
    uint64_t refused = 0;  // calls without a token of the file
    size_t tokens = 0;
    bool stale = false;  // the file changed and cannot be used: an earlier state of it counts
  };

  // INVALID_ARGUMENT: the file is wrong. `logger` must outlive this.
  static absl::StatusOr<std::unique_ptr<Callers>> FromFile(std::string path, std::string secret,
                                                           Logger& logger);

  // Any thread. UNAUTHENTICATED in the same words whatever the cause.
  absl::StatusOr<Caller> Identify(const std::optional<std::string>& token);
  // Reads the file again. What two looks in a row find counts: at the first, whoever writes it may
  // not be done. A file that is wrong changes nothing, and the log and the figures say so. What a
  // token began before it was taken out goes on.
  void Look();
  Figures figures() const;

 private:
  struct Known {
    rpc::TokenDigest digest;
    Caller caller;
  };
  Callers(std::string path, std::string secret, Logger& logger)
      : path_(std::move(path)), secret_(std::move(secret)), logger_(logger) {}
  absl::Status Take(const std::string& text);
  void Take(const TokenFile& file);

  const std::string path_;
  const std::string secret_;
  Logger& logger_;
  std::string seen_;   // at the last look
  std::string text_;   // that counts
  std::string wrong_;  // what was said of the file since; empty: nothing
  uint32_t next_number_ = 1;
  std::map<std::string, std::shared_ptr<Tenant>> tenants_;

  mutable std::mutex mutex_;
  std::shared_ptr<const std::vector<Known>> known_;
  std::atomic<uint64_t> refused_ = 0;
  std::atomic<bool> stale_ = false;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_CALLERS_H_
