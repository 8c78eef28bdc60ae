// SPDX-License-Identifier: Apache-2.0
// Whose work it is, as far as the order of the queue goes.
#ifndef SETU_SERVICES_ROUTER_SHARE_H_
#define SETU_SERVICES_ROUTER_SHARE_H_

#include <cstdint>

namespace setu::router {

// Strictly before the ones behind it, for as long as AdmissionQueue::Config::age_bound.
enum class Priority : uint8_t { kHigh, kNormal, kLow };
inline constexpr int kPriorities = 3;

struct Share {
  uint32_t tenant = 0;  // its number in this process
  uint32_t weight = 1;  // twice the weight: twice the work, where all want more than there is
  Priority priority = Priority::kNormal;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_SHARE_H_
