// SPDX-License-Identifier: Apache-2.0
// Weights of the CPU, in the layout of packed_layout.h.
#ifndef SETU_KERNELS_CPU_PACKED_MATRIX_H_
#define SETU_KERNELS_CPU_PACKED_MATRIX_H_

#include <cstdlib>
#include <memory>
#include <span>

#include "kernels/cpu/kernel_table.h"
#include "kernels/ops.h"

namespace setu::kernels {

class CpuMatrix final : public PackedMatrix {
 public:
  // Room for a matrix of this shape, spread over `nodes` (numa.h) where it is large; PackTile fills
  // it, every tile once.
  CpuMatrix(WeightType type, int64_t rows, int64_t cols, PackOrder order,
            std::span<const int> nodes = {});

  int64_t rows() const override { return view_.rows; }
  int64_t cols() const override { return view_.cols; }
  WeightType type() const override { return view_.type; }
  std::span<const std::byte> data() const override {
    return {reinterpret_cast<const std::byte*>(data_.get()), bytes_};
  }
  int64_t tiles() const;
  const WeightsView& view() const { return view_; }

  // Copies the 16 rows of `tile` from `raw`, of this matrix's shape and type, or quantises them
  // from floats to this matrix's type. Tiles are independent.
  void PackTile(const RawMatrix& raw, int64_t tile);
  // Or where all that data() of such a matrix had is to be put.
  std::span<std::byte> room() { return {reinterpret_cast<std::byte*>(data_.get()), bytes_}; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  size_t bytes_ = 0;
  std::unique_ptr<uint8_t[], Free> data_;  // 64-byte aligned
  WeightsView view_;
};

// What an Ops of the CPU has packed.
inline const CpuMatrix& CpuOf(const PackedMatrix& matrix) {
  return static_cast<const CpuMatrix&>(matrix);
}

}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_PACKED_MATRIX_H_
