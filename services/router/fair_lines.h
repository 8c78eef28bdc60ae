// SPDX-License-Identifier: Apache-2.0
// A line for each tenant, and whose turn it is: the tenant's that has had the least work for its
// weight. A tenant that comes back starts where the others are, less kBurst, so that who sends
// little need not let others in between its few prompts, and nobody saves up more turns than that
// (start-time fair queueing: Goyal, Vin, Cheng, 1996). Pure policy; entries are numbers that grow,
// the older first in its line. Every call is logarithmic in tenants and entries.
//
//   FairLines lines;
//   lines.Add({.tenant = 7, .weight = 2}, entry);
//   for (uint64_t entry : lines.First(4)) ...      // in the order of their turns
//   lines.Remove(7, entry);
//   lines.Charge(7, /*work=*/300);                 // it had its turn
//   lines.Settle(7, /*work=*/-40);                 // and needed less than was thought
#ifndef SETU_SERVICES_ROUTER_FAIR_LINES_H_
#define SETU_SERVICES_ROUTER_FAIR_LINES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "services/router/share.h"

namespace setu::router {

class FairLines {
 public:
  static constexpr double kBurst = 1024;  // of work over weight, in tokens

  void Add(const Share& share, uint64_t entry);
  void Remove(uint32_t tenant, uint64_t entry);
  // One of the tenant's entries had its turn: `work` on its account.
  void Charge(uint32_t tenant, int64_t work);
  // Corrects the account by so much work, which may be negative.
  void Settle(uint32_t tenant, int64_t work);

  // The first `most` in the order of turns: the first of each line, then the second of each.
  std::vector<uint64_t> First(size_t most) const;
  std::optional<uint64_t> NewestOf(uint32_t tenant) const;
  size_t size() const { return size_; }
  // How many go before one that came now, if all entries are equal work.
  size_t Ahead(const Share& share) const;

 private:
  struct Line {
    double had = 0;  // work over weight
    uint32_t weight = 1;
    std::set<uint64_t> entries;
  };
  using Lines = std::map<uint32_t, Line>;  // by tenant; those without entries keep their account
  void SetHad(Lines::iterator line, double had);

  Lines lines_;
  std::set<std::pair<double, uint32_t>> turns_;  // of lines with entries: had, tenant
  double now_had_ = 0;                           // by the last one whose turn it was, before it
  uint64_t weights_ = 0;                         // of lines with entries
  size_t size_ = 0;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_FAIR_LINES_H_
