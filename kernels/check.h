// SPDX-License-Identifier: Apache-2.0
// What only a bug of the caller can break: shapes that do not fit. Files are checked before.
#ifndef SETU_KERNELS_CHECK_H_
#define SETU_KERNELS_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define SETU_KERNEL_CHECK(condition, rule)                                                         \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: broken rule: %s (%s)\n", __FILE__, __LINE__, rule, #condition); \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)

#endif  // SETU_KERNELS_CHECK_H_
