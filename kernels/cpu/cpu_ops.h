// SPDX-License-Identifier: Apache-2.0
// The Ops of a CPU: checks shapes, cuts each op into pieces and has the threads do them with one
// ISA's kernels. Made by MakeCpuOps.
#ifndef SETU_KERNELS_CPU_CPU_OPS_H_
#define SETU_KERNELS_CPU_CPU_OPS_H_

#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/line_buffer.h"
#include "kernels/ops.h"

namespace setu::kernels {

class CpuOps final : public Ops {
 public:
  // `cpus`: as ThreadPool takes them.
  CpuOps(NumericPath path, KvType kv_type, const KernelTable& kernels, int threads,
         std::vector<int> cpus = {});

  std::string path_name() const override;
  std::string isa_name() const override { return kernels_.isa; }
  int threads() const override { return pool_.threads(); }
  KvType kv_type() const override { return kv_type_; }
  void AdoptCaller() override { pool_.AdoptCaller(); }

  std::unique_ptr<PackedMatrix> PackAs(const RawMatrix& raw, WeightType type) override;
  PackFormat pack_format() const override;
  size_t PackedBytes(WeightType type, int64_t rows, int64_t cols) const override;
  std::unique_ptr<PackedMatrix> Restore(WeightType type, int64_t rows, int64_t cols,
                                        const Fill& fill) override;
  void Embed(const PackedMatrix& table, std::span<const int32_t> ids, Matrix out) override;
  void Linear(const LinearInput& input, std::span<const LinearOutput> outputs) override;
  void FeedForward(const LinearInput& input, const PackedMatrix& gate, const PackedMatrix& up,
                   const LinearOutput& down) override;
  void RopeAndStoreKv(Matrix q, Matrix k, ConstMatrix v, std::span<const SequenceRows> sequences,
                      const HeadNorms& norms, const RopeTable& table, RopeKind kind,
                      const KvLayer& kv) override;
  void Attention(ConstMatrix q, std::span<const SequenceRows> sequences,
                 const AttentionShape& shape, const KvLayer& kv, Matrix out) override;
  uint32_t ProbeReads(std::span<const PackedMatrix* const> matrices) override;
  int64_t ProbeProducts(const PackedMatrix& weights, int64_t rounds) override;

 private:
  struct SequencePiece {
    size_t sequence;
    AttentionPiece piece;
  };

  // How the products of a Linear want their input.
  struct Wanted {
    bool floats = false, int8 = false, rounded = false;
    void Add(const Wanted& other) {
      floats |= other.floats;
      int8 |= other.int8;
      rounded |= other.rounded;
    }
  };

  // A product's weights, in tiles, as pieces of whole panels. Each is smaller than the one before,
  // as what is left by the square of what is left of their number: streams are long at first, and
  // at the end no thread waits for long. Late ones may be empty.
  struct Cut {
    int64_t tiles, pieces, panel;
    int64_t Border(int64_t i) const {  // where piece i begins
      const int64_t left = pieces - i;
      return i == pieces ? tiles
                         : (tiles - tiles * left * left / (pieces * pieces)) / panel * panel;
    }
    int64_t Widest() const { return tiles * (2 * pieces - 1) / (pieces * pieces) + 1 + panel; }
  };

  ConstMatrix Prepare(const LinearInput& input, Wanted wanted);
  const float* MakeRow(const LinearInput& input, int64_t row, float* out) const;
  void TurnHeads(float* heads, int64_t cols, int64_t head_dim, const float* norm, float eps,
                 const RopeTable& table, int64_t position, RopeKind kind) const;
  void StoreHeads(const float* k, const float* v, int64_t position, const SequenceRows& sequence,
                  const KvLayer& kv) const;
  bool AttendsInBf16() const;
  int64_t PieceQueries(std::span<const SequenceRows> sequences, int64_t heads) const;
  void CutAttention(std::span<const SequenceRows> sequences, int64_t group, int64_t kv_heads);
  Wanted WantedBy(const PackedMatrix& weights) const;
  Cut CutOf(ConstMatrix x, int64_t tiles, size_t bytes) const;
  void Multiply(const LinearArgs& args, int64_t begin, int64_t end, int thread);
  LinearArgs ArgsOf(ConstMatrix x, const LinearOutput& output);
  QuantisedRows Quantised() { return {q_.data(), q_scales_.data(), q_sums_.data()}; }
  void MultiplyAll(ConstMatrix x, std::span<const LinearOutput> outputs);
  void Gate(const Cut& cut, ConstMatrix x, const PackedMatrix& gate, const PackedMatrix& up,
            Matrix out);

  const NumericPath path_;
  const KvType kv_type_;
  const KernelTable& kernels_;
  const PackOrder order_;         // of its weights
  const std::vector<int> nodes_;  // that its threads run on
  ThreadPool pool_;
  // Kept from call to call, so that a step allocates nothing once they have grown.
  LineBuffer<float> made_;  // rows of a Linear's input: all of them, or one per thread
  LineBuffer<int8_t> q_;    // quantised rows of a Linear's input
  LineBuffer<float> q_scales_;
  LineBuffer<GroupSums> q_sums_;
  LineBuffer<uint8_t> rounded_;  // RoundedBytes, of a product's input
  LineBuffer<uint8_t> next_;     // the same of the product after it
  LineBuffer<float> gated_;      // [rows, gate.rows()] of FeedForward
  LineBuffer<float> halves_;     // gate and up before that, one piece per thread
  LineBuffer<float> sums_;       // of bf16 products, one piece per thread
  LineBuffer<float> scratch_;    // of attention, one piece per thread
  std::vector<SequencePiece> pieces_;
};

}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_CPU_OPS_H_
