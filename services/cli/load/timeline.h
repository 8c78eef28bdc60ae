// SPDX-License-Identifier: Apache-2.0
// What happened in each second of a load. Pure; times are told in ascending order, and only the
// second that is under way is kept in full.
#ifndef SETU_SERVICES_CLI_LOAD_TIMELINE_H_
#define SETU_SERVICES_CLI_LOAD_TIMELINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"

namespace setu::cli {

struct Middle {
  double p50_ms = 0, p99_ms = 0;
};

struct Second {
  int64_t second = 0;  // from the start of the program's first load
  int64_t sent = 0, ok = 0, failed = 0, tokens = 0;
  std::optional<Middle> first_token, between;  // of what came in it
};

class Timeline {
 public:
  void Sent(Duration at) { ++Of(at).sent; }
  void Ended(Duration at, bool ok) { ++(ok ? Of(at).ok : Of(at).failed); }
  void Tokens(Duration at, int tokens) { Of(at).tokens += tokens; }
  void FirstToken(Duration at, double ms);
  // So long before each of so many tokens.
  void Between(Duration at, double ms, int tokens);

  void Append(Timeline& later);

  // From the first to the last in which something happened; ends the one that is under way.
  const std::vector<Second>& Seconds();

 private:
  Second& Of(Duration at);
  void Close();

  std::vector<Second> seconds_;  // the last one is under way while open_
  bool open_ = false;
  std::vector<float> first_tokens_, betweens_;  // of that one
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_TIMELINE_H_
