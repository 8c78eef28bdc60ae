// SPDX-License-Identifier: Apache-2.0
// Large memory in pages of 2 MiB, where the system gives them: fewer of them are to be translated
// than of 4 KiB, of which a core remembers some dozens near and two thousand far.
//
//   void* p = aligned_alloc(kHugePage, room);  // room >= bytes >= kHugePage
//   AskForHugePages(p, bytes);
#ifndef SETU_KERNELS_HUGE_PAGES_H_
#define SETU_KERNELS_HUGE_PAGES_H_

#include <sys/mman.h>

#include <cstddef>

namespace setu::kernels {

inline constexpr size_t kHugePage = size_t{2} << 20;

// For the whole ones among `bytes` from `memory` on, which starts one; the rest stays as small as
// it is. Before they are touched. A refusal costs speed alone.
inline void AskForHugePages(void* memory, size_t bytes) {
  madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}

}  // namespace setu::kernels

#endif  // SETU_KERNELS_HUGE_PAGES_H_
