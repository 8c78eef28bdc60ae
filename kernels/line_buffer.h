// SPDX-License-Identifier: Apache-2.0
// A vector that starts on a cache line, as std::vector does not promise: sixteen floats from a
// multiple of sixteen on are one line, not parts of two, and a load takes one access.
//
//   kernels::LineBuffer<float> rows(count * cols);
#ifndef SETU_KERNELS_LINE_BUFFER_H_
#define SETU_KERNELS_LINE_BUFFER_H_

#include <cstddef>
#include <new>
#include <vector>

namespace setu::kernels {

template <class T>
struct OnCacheLine {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  OnCacheLine() = default;
  template <class U>
  OnCacheLine(const OnCacheLine<U>&) {}  // Implicit: what a container makes its own of.
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const OnCacheLine&) const { return true; }
};

template <class T>
using LineBuffer = std::vector<T, OnCacheLine<T>>;

}  // namespace setu::kernels

#endif  // SETU_KERNELS_LINE_BUFFER_H_
