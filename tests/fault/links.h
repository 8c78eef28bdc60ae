// SPDX-License-Identifier: Apache-2.0
// A proxy before each worker of a ProcessCluster, for a test that harms the links to it.
//
//   Links links;
//   ProcessCluster cluster({.model = path, .reach = links.reach()});
//   links.To("decode-0").Harm({.refuse = true}, cluster.pid("prefill-0"));
#ifndef SETU_TESTS_FAULT_LINKS_H_
#define SETU_TESTS_FAULT_LINKS_H_

#include <map>
#include <string>

#include "tests/fault/fault_proxy.h"

namespace setu::test {

class Links {
 public:
  // For the options of one cluster, which this outlives.
  auto reach() {
    return [this](const std::string& worker, const std::string& address) {
      return proxies_.try_emplace(worker, address).first->second.address();
    };
  }
  FaultProxy& To(const std::string& worker) { return proxies_.at(worker); }
  void HealAll() {
    for (auto& [worker, proxy] : proxies_) proxy.Heal();
  }

 private:
  std::map<std::string, FaultProxy> proxies_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_FAULT_LINKS_H_
