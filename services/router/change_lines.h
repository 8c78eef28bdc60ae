// SPDX-License-Identifier: Apache-2.0
// Log lines about one thing that is looked at again and again: one for each change, however often
// it is looked at. What changes all the time gets kBurst lines, then one per kPause that says how
// many changes had none. Pure policy: time is passed in.
//
//   ChangeLines lines;
//   if (auto line = lines.Next(now, "unreachable", "decode worker d is unreachable: no route")) {
//     logger.Warning(*line);
//   }
#ifndef SETU_SERVICES_ROUTER_CHANGE_LINES_H_
#define SETU_SERVICES_ROUTER_CHANGE_LINES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/clock.h"

namespace setu::router {

class ChangeLines {
 public:
  static constexpr int64_t kBurst = 8;
  static constexpr Duration kPause = std::chrono::seconds(10);

  // The line to write now; nullopt where nothing changed, or where it is too early to say so. Two
  // looks tell of the same where `state` is equal, whatever the lines say.
  std::optional<std::string> Next(TimePoint now, absl::string_view state, absl::string_view line);

 private:
  bool MayWrite(TimePoint now);

  std::string seen_;
  std::string told_;
  int64_t changes_ = 0;  // since the last line
  int64_t budget_ = kBurst;
  TimePoint refilled_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_CHANGE_LINES_H_
