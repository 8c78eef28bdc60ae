// SPDX-License-Identifier: Apache-2.0
// Every operation the forward pass is made of. One implementation per device and numeric path;
// whatever the ISA, thread count, batch or chunking, a path gives the same bits (see README.md).
//
//   auto ops = kernels::MakeCpuOps({.path = NumericPath::kInt8G32, .threads = 2});
//   auto wq = (*ops)->Pack(raw);
//   (*ops)->Linear(x, {{wq.get(), nullptr, q}});
//
// All matrices are f32 views [rows, cols]. Sizes that do not fit each other are bugs (CHECK), never
// the world's fault: the model loader has checked shapes before. Calls are made by one thread at a
// time; the implementation spreads each over its own threads.
#ifndef SETU_KERNELS_OPS_H_
#define SETU_KERNELS_OPS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "kernels/tensor.h"

namespace setu::kernels {

enum class NumericPath : uint8_t { kF32, kInt8G32, kBf16Tile };

// Weights in the order the inner loop wants; owns its memory, at most 1.15x the file's bytes.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  virtual int64_t rows() const = 0;  // outputs
  virtual int64_t cols() const = 0;  // inputs
  virtual WeightType type() const = 0;
  virtual std::span<const std::byte> data() const = 0;  // all of it, for Ops::Restore to fill
  size_t bytes() const { return data().size(); }
};

// What an Ops makes of weights: one restores what another has packed where both have the same.
struct PackFormat {
  std::string order;     // "lanes" or "tiles", as cpu/packed_layout.h says
  int32_t revision = 0;  // another one where the same weights become other bytes
};

// What a Linear multiplies: rows as they are, or made of others while they are prepared for the
// product, so that they are not written to memory and read again.
struct Normed {  // x / sqrt(mean(x^2) + eps) * weight, a mean per row
  ConstMatrix x;
  const float* weight = nullptr;  // [x.cols]
  float eps = 0.0f;
};
using LinearInput = std::variant<ConstMatrix, Normed>;

// One output of a Linear: out = x * weights^T (+ bias), or out += that where `accumulate`.
struct LinearOutput {
  const PackedMatrix* weights = nullptr;
  const float* bias = nullptr;  // [weights.rows] or null
  Matrix out;                   // [x.rows, weights.rows]
  bool accumulate = false;      // residual: out = out + product, one rounding after the product's
};

// cos and sin of every position, made once in double: [positions, rotary_dim / 2] each.
struct RopeTable {
  const float* cos = nullptr;
  const float* sin = nullptr;
  int64_t positions = 0;
  int64_t rotary_dim = 0;
};

// Consecutive rows of one sequence in a batch.
struct SequenceRows {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t start = 0;                // absolute position of first_row
  std::span<const int32_t> blocks;  // block ids, covering positions 0 .. start + rows - 1
};

// One layer's KV inside the pool. A block of a layer is one piece: of each kv_head K of `type`,
// then of each V, as kv_place.h has them. Each of these ends with its scales, float
// [block_tokens], where the type is int8. block_tokens is a multiple of 16.
struct KvLayer {
  std::byte* base = nullptr;  // block 0 of this layer
  size_t block_stride = 0;    // bytes from one block to the next
  KvType type = KvType::kF32;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t block_tokens = 0;
};

// A norm of every head of q and of k, as Normed with a mean per head; null weights: none.
struct HeadNorms {
  const float* q = nullptr;  // [head_dim]
  const float* k = nullptr;
  float eps = 0.0f;
};

struct AttentionShape {
  int64_t heads = 0;
  float scale = 1.0f;     // on the scores, usually 1 / sqrt(head_dim)
  float soft_cap = 0.0f;  // 0: none; else cap * tanh(score / cap)
  int64_t window = 0;     // 0: whole past; else only the last `window` positions
};

class Ops {
 public:
  virtual ~Ops() = default;

  // Such as "int8-g32/kv-f16/r1", "avx512", 2.
  virtual std::string path_name() const = 0;
  virtual std::string isa_name() const = 0;
  virtual int threads() const = 0;
  virtual KvType kv_type() const = 0;
  // The calling thread makes all calls from now on: it is pinned where the others are.
  virtual void AdoptCaller() = 0;

  // Load time. Copies; raw.data may go afterwards. `type` is raw's own; or Q8_0 or Q4_0, and raw's
  // F32, F16 or BF16, whose rows are quantised on their way (QuantiseRow).
  virtual std::unique_ptr<PackedMatrix> PackAs(const RawMatrix& raw, WeightType type) = 0;
  std::unique_ptr<PackedMatrix> Pack(const RawMatrix& raw) { return PackAs(raw, raw.type); }
  virtual PackFormat pack_format() const = 0;
  // What data() of a matrix packed as `type` has.
  virtual size_t PackedBytes(WeightType type, int64_t rows, int64_t cols) const = 0;
  // A matrix that was packed before: `fill` puts what its data() had from `offset` on to where it
  // goes. Threads call it at once, each for another piece of kRestorePiece bytes, of which the last
  // may have fewer. Null where one call says false.
  using Fill = std::function<bool(size_t offset, std::span<std::byte> to)>;
  static constexpr size_t kRestorePiece = 1 << 20;
  virtual std::unique_ptr<PackedMatrix> Restore(WeightType type, int64_t rows, int64_t cols,
                                                const Fill& fill) = 0;

  // out[i, :] = table[ids[i], :], dequantised. ids within table.rows.
  virtual void Embed(const PackedMatrix& table, std::span<const int32_t> ids, Matrix out) = 0;
  // Several products of the same input: its activations are prepared once.
  virtual void Linear(const LinearInput& input, std::span<const LinearOutput> outputs) = 0;
  // The product `down` of silu(x * gate^T) * (x * up^T), which is made as that product takes it;
  // gate and up have one shape.
  virtual void FeedForward(const LinearInput& input, const PackedMatrix& gate,
                           const PackedMatrix& up, const LinearOutput& down) = 0;
  // Of a layer's fresh q [rows, heads * head_dim], k and v [rows, kv_heads * head_dim]: norms each
  // head of q and k, turns it in place by its row's position, and puts k and v, rounded to the KV
  // type, into their blocks.
  virtual void RopeAndStoreKv(Matrix q, Matrix k, ConstMatrix v,
                              std::span<const SequenceRows> sequences, const HeadNorms& norms,
                              const RopeTable& table, RopeKind kind, const KvLayer& kv) = 0;
  // Causal attention of q [rows, heads * head_dim] over the sequence's blocks, out of q's shape.
  // Queries of a chunk see the chunk's own keys: RopeAndStoreKv comes before.
  virtual void Attention(ConstMatrix q, std::span<const SequenceRows> sequences,
                         const AttentionShape& shape, const KvLayer& kv, Matrix out) = 0;

  // What the device can do at most, for common/roofline, with all threads; the caller takes the
  // time. Both allocate and are for load time.
  // Reads every byte of the matrices once; the sum modulo 2^32 of their 32-bit words.
  virtual uint32_t ProbeReads(std::span<const PackedMatrix* const> matrices) = 0;
  // Multiplies random operands in registers, `rounds` times over, by the instruction that a Linear
  // with `weights` multiplies by: how many products that were.
  virtual int64_t ProbeProducts(const PackedMatrix& weights, int64_t rounds) = 0;
};

}  // namespace setu::kernels

#endif  // SETU_KERNELS_OPS_H_
