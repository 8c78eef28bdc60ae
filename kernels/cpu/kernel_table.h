// SPDX-License-Identifier: Apache-2.0
// The inner loops of one ISA, as a table of functions over plain structs. Each call is one piece of
// an op, done by one thread; CpuOps divides the ops into pieces. Only plain structs here: files
// built for one ISA include this header.
#ifndef SETU_KERNELS_CPU_KERNEL_TABLE_H_
#define SETU_KERNELS_CPU_KERNEL_TABLE_H_

#include <stdint.h>

#include "kernels/types.h"

namespace setu::kernels {

// Which of a tile's two dimensions are the lanes of its vectors (packed_layout.h).
enum class PackOrder { kLanes, kTiles };

struct WeightsView {
  WeightType type;
  PackOrder order;
  int64_t rows, cols;
  int64_t tile_bytes;
  const uint8_t* tiles;  // packed_layout.h
};

// Sums over 32 quantised activations of a row.
struct GroupSums {
  float all;            // of the q
  int32_t negative[3];  // minus the sum of all q, of the first 16, of the last 16
};

// Rows of quantised activations, x = scale * q: groups of 32 that share a scale lie as
// packed_layout.h has them.
struct QuantisedRows {
  int8_t* q;
  float* scales;
  GroupSums* sums;
};

struct LinearArgs {
  WeightsView weights;
  int64_t rows;    // of x
  const float* x;  // [rows, cols]
  int64_t x_stride;
  QuantisedRows quantised;  // x; q is null where it is not multiplied by int8 groups
  const uint8_t* rounded;   // of x, by `round`; null off the bf16-tile path
  // Null; or the tiles of a second matrix like `weights`, and outputs are silu of the first's times
  // the second's: in `gated`, as `rounded` of a product whose cols they are, in place of `out`.
  const uint8_t* up;
  uint8_t* gated;
  const float* bias;  // [weights.rows] or null
  float* out;         // [rows, weights.rows]
  int64_t out_stride;
  bool accumulate;
};

// Some consecutive rows of one sequence.
struct AttentionArgs {
  const float* q;  // [rows, heads * head_dim]
  int64_t q_stride;
  float* out;
  int64_t out_stride;
  int64_t start;          // absolute position of row 0
  const int32_t* blocks;  // ids of the sequence's blocks
  int64_t heads, kv_heads, head_dim;
  float scale, soft_cap;
  int64_t window;
  const uint8_t* kv;  // block 0
  int64_t block_stride, block_tokens;
  int64_t head_bytes;  // of K, or of V, of one head in a block
  KvType type;
};

// Vectors of 64 bytes that a probe may read: x and weights.
constexpr int kProbeVectors = 8;

// What a thread does of it: `rows` of the rows from `first` on, for the query heads that share the
// KV heads from `kv_head` on. At most kPieceQueries queries (attention_bf16: kPairPieceQueries), or
// one row and KV head.
struct AttentionPiece {
  int64_t kv_head, kv_heads;
  int64_t first, rows;
};

struct KernelTable {
  const char* isa;

  // Outputs 16 tile .. 16 tile + 15 of all rows, by plain f32 products or by int8 groups.
  void (*linear_f32)(const LinearArgs& args, int64_t begin, int64_t end);
  void (*linear_int8)(const LinearArgs& args, int64_t begin, int64_t end);
  // One row of `cols`, a multiple of 32, to its place among `rows`.
  void (*quantise)(const float* x, int64_t cols, int64_t row, int64_t rows, QuantisedRows out);
  // Outputs 16 begin .. 16 end - 1 of all rows, by bf16 products; `scratch` has bf16_scratch
  // floats.
  void (*linear_bf16)(const LinearArgs& args, int64_t begin, int64_t end, float* scratch);
  // Rows `row` .. `row` + `count` - 1 of `rows` for linear_bf16, to their place in `rounded`, which
  // has RoundedBytes: round_rows from a multiple of it on, or fewer at the end.
  void (*round)(const float* x, int64_t x_stride, int64_t cols, int64_t row, int64_t count,
                int64_t rows, uint8_t* rounded);
  int64_t round_rows;
  PackOrder bf16_order;  // of its weights
  int64_t bf16_scratch;
  int64_t bf16_panel;  // tiles that it multiplies at once: pieces of whole panels waste none
  // Tiles that share the reading of many rows, so that pieces of as many read less; 0: no matter.
  int64_t bf16_share;
  bool bf16_gates;  // linear_bf16 takes `up`
  // One row of a table of weights.
  void (*embed)(const WeightsView& table, int64_t row, float* out);
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t cols, float* out);
  // One head in place; cos and sin of its position, [rotary_dim / 2].
  void (*rope)(float* head, const float* cos, const float* sin, int64_t rotary_dim, RopeKind kind);
  // silu(gate) * up.
  void (*silu_mul)(const float* gate, const float* up, int64_t count, float* out);
  void (*exp)(const float* x, int64_t count, float* out);
  // Of kernels/scores.h.
  void (*order_scores)(const float* x, int64_t count, float* out);
  float (*highest_score)(const float* x, int64_t count);
  void (*scale_scores)(float* x, int64_t count, float origin, float divisor);
  double (*sum_scores)(const float* x, int64_t count, float least);
  int64_t (*select_scores)(const float* x, int64_t count, float least, int32_t* ids);
  // Rounds x to `type`, into a head's K or V. `scale`: of int8 alone.
  void (*store_kv)(const float* x, int64_t count, KvType type, KvPlace place, uint8_t* head,
                   float* scale);
  // `scratch` has AttentionScratchFloats, on a cache line.
  void (*attention)(const AttentionArgs& args, const AttentionPiece& piece, float* scratch);
  // The same by bf16 products, K and V in bf16 or int8; `scratch` has PairAttentionScratchFloats.
  void (*attention_bf16)(const AttentionArgs& args, const AttentionPiece& piece, float* scratch);

  // Probes (probe_impl.h). Products of operands in registers, `rounds` times over: their number,
  // and in `sum` what they add up to. `operands` are kProbeVectors of 64 bytes.
  int64_t (*probe_f32)(const float* operands, int64_t rounds, float* sum);
  int64_t (*probe_bf16)(const float* operands, int64_t rounds, float* sum);
  int64_t (*probe_int8)(const int8_t* operands, int64_t rounds, float* sum);
  // The sum modulo 2^32 of the 32-bit words of memory.
  uint32_t (*sum_words)(const uint8_t* data, int64_t bytes);
};

const KernelTable& PortableKernels();
const KernelTable& Avx2Kernels();
const KernelTable& Avx512Kernels();
const KernelTable& AmxKernels();

}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_KERNEL_TABLE_H_
