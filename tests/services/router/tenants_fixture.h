// SPDX-License-Identifier: Apache-2.0
// A router with tenants, in front of scripted workers. Whoever is NAME sends the token NAME-token.
#ifndef SETU_TESTS_SERVICES_ROUTER_TENANTS_FIXTURE_H_
#define SETU_TESTS_SERVICES_ROUTER_TENANTS_FIXTURE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/router/callers.h"
#include "tests/services/router/router_fixture.h"
#include "tests/support/temp_dir.h"

namespace setu::router {

class TenantsFixture : public RouterFixture {
 protected:
  // alice and bob, each a tenant of its own.
  void SetUp() override {
    RouterFixture::SetUp();
    WriteTokens({{"alice", "alice"}, {"bob", "bob"}});
    auto callers = Callers::FromFile(dir_.File("tokens"), std::string(32, 's'), logger_);
    ASSERT_TRUE(callers.ok()) << callers.status();
    callers_ = *std::move(callers);
    options_.callers = callers_.get();
  }

  // By name: "TENANT" or "TENANT, PRIORITY". Limits by tenant: "requests=1".
  void WriteTokens(const std::map<std::string, std::string>& tokens,
                   const std::map<std::string, std::string>& limits = {}) {
    std::string text;
    for (const std::string tenant : {"alice", "bob"}) {
      const auto its = limits.find(tenant);
      absl::StrAppend(&text, tenant, ": [", its == limits.end() ? "" : its->second, "]\n");
    }
    for (const auto& [name, whose] : tokens) {
      absl::StrAppend(&text, rpc::HexOf(rpc::DigestOf(name + "-token")), ": [", whose, "]\n");
    }
    dir_.Write("tokens", text);
    for (int look = 0; callers_ && look < 2; ++look) callers_->Look();  // then it counts
  }

  // `id` shows in the workers' headers.
  static test::CallOptions As(const std::string& name, const std::string& id = "") {
    test::CallOptions options{.headers = {{"authorization", "Bearer " + name + "-token"}}};
    if (!id.empty()) options.headers["x-request-id"] = id;
    return options;
  }

  test::TempDir dir_;
  std::unique_ptr<Callers> callers_;
};

}  // namespace setu::router

#endif  // SETU_TESTS_SERVICES_ROUTER_TENANTS_FIXTURE_H_
