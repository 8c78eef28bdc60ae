// SPDX-License-Identifier: Apache-2.0
// The Ops of a CPU: checks shapes, cuts each op into pieces and has the threads do them with one
// ISA's kernels. Made by MakeCpuOps.
#ifndef SETU_KERNELS_CPU_CPU_OPS_H_
#define SETU_KERNELS_CPU_CPU_OPS_H_

#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/ops.h"

namespace setu::kernels {

class CpuOps final : public Ops {
 public:
  CpuOps(NumericPath path, const KernelTable& kernels, int threads);

  std::string path_name() const override;
  std::string isa_name() const override { return kernels_.isa; }
  int threads() const override { return pool_.threads(); }
  KvType kv_type() const override;

  std::unique_ptr<PackedMatrix> Pack(const RawMatrix& raw) override;
  void Embed(const PackedMatrix& table, std::span<const int32_t> ids, Matrix out) override;
  void RmsNorm(ConstMatrix x, const float* weight, float eps, int64_t group, Matrix out) override;
  void Linear(ConstMatrix x, std::span<const LinearOutput> outputs) override;
  void Rope(Matrix x, int64_t head_dim, std::span<const SequenceRows> sequences,
            const RopeTable& table, RopeKind kind) override;
  void StoreKv(ConstMatrix k, ConstMatrix v, std::span<const SequenceRows> sequences,
               const KvLayer& kv) override;
  void Attention(ConstMatrix q, std::span<const SequenceRows> sequences,
                 const AttentionShape& shape, const KvLayer& kv, Matrix out) override;
  void SiluMul(Matrix gate, ConstMatrix up) override;

 private:
  struct AttentionPiece {
    size_t sequence;
    int64_t kv_head, first, rows;  // rows of the sequence
  };

  void QuantiseRows(ConstMatrix x);
  LinearArgs ArgsOf(ConstMatrix x, const LinearOutput& output) const;

  const NumericPath path_;
  const KernelTable& kernels_;
  ThreadPool pool_;
  // Kept from call to call, so that a step allocates nothing once they have grown.
  std::vector<int8_t> q_;           // [rows, cols] of the x of a Linear
  std::vector<GroupScale> groups_;  // [rows, cols / 32]
  std::vector<float> scratch_;      // of attention, one piece per thread
  std::vector<AttentionPiece> pieces_;
};

}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_CPU_OPS_H_
