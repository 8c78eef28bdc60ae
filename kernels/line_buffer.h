// SPDX-License-Identifier: Apache-2.0
// A vector that starts on a cache line, as std::vector does not promise: sixteen floats from a
// multiple of sixteen on are one line, not parts of two, and a load takes one access. A large one
// asks for huge pages.
//
//   kernels::LineBuffer<float> rows(count * cols);
#ifndef SETU_KERNELS_LINE_BUFFER_H_
#define SETU_KERNELS_LINE_BUFFER_H_

#include <cstddef>
#include <new>
#include <vector>

#include "kernels/huge_pages.h"

namespace setu::kernels {

template <class T>
struct OnCacheLine {
  using value_type = T;
  static std::align_val_t Alignment(size_t bytes) {
    return std::align_val_t(bytes >= kHugePage ? kHugePage : 64);
  }
  OnCacheLine() = default;
  template <class U>
  OnCacheLine(const OnCacheLine<U>&) {}  // Implicit: what a container makes its own of.
  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    void* p = ::operator new(bytes, Alignment(bytes));
    if (bytes >= kHugePage) AskForHugePages(p, bytes);
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t count) { ::operator delete(p, Alignment(count * sizeof(T))); }
  bool operator==(const OnCacheLine&) const { return true; }
};

template <class T>
using LineBuffer = std::vector<T, OnCacheLine<T>>;

}  // namespace setu::kernels

#endif  // SETU_KERNELS_LINE_BUFFER_H_
