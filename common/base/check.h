// SPDX-License-Identifier: Apache-2.0
// CHECK: for what only a bug in this program can cause. Nothing that a client, a file or a peer
// sends may reach one; those get an absl::Status.
//
//   SETU_CHECK(lease.size() == table.size(), "a table covers its lease");
#ifndef SETU_COMMON_BASE_CHECK_H_
#define SETU_COMMON_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define SETU_CHECK(condition, rule)                                                                \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: broken rule: %s (%s)\n", __FILE__, __LINE__, rule, #condition); \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)

#endif  // SETU_COMMON_BASE_CHECK_H_
