// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_ops.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "kernels/check.h"
#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/cpu/packed_matrix.h"
#include "kernels/cpu/pieces.h"
#include "kernels/device.h"
#include "kernels/kv_place.h"
#include "kernels/numa.h"

namespace setu::kernels {
namespace {

// Null: the row belongs to none.
const SequenceRows* SequenceOf(std::span<const SequenceRows> sequences, int64_t row) {
  const auto after =
      std::upper_bound(sequences.begin(), sequences.end(), row,
                       [](int64_t r, const SequenceRows& s) { return r < s.first_row; });
  if (after == sequences.begin()) return nullptr;
  const SequenceRows& s = *(after - 1);
  return row < s.first_row + s.rows ? &s : nullptr;
}

void CheckSequences(std::span<const SequenceRows> sequences, int64_t rows, int64_t block_tokens) {
  for (const SequenceRows& s : sequences) {
    SETU_KERNEL_CHECK(s.first_row >= 0 && s.rows >= 0 && s.first_row + s.rows <= rows,
                      "sequences lie within the batch's rows");
    SETU_KERNEL_CHECK(s.start >= 0, "positions count from 0");
    SETU_KERNEL_CHECK(std::ssize(s.blocks) * block_tokens >= s.start + s.rows,
                      "blocks cover all positions of the sequence");
  }
}

}  // namespace

CpuOps::CpuOps(NumericPath path, KvType kv_type, const KernelTable& kernels, int threads,
               std::vector<int> cpus)
    : path_(path),
      kv_type_(kv_type),
      kernels_(kernels),
      order_(path == NumericPath::kBf16Tile ? kernels.bf16_order : PackOrder::kLanes),
      nodes_(NodesOf(cpus.empty() ? AvailableCpus() : cpus)),
      pool_(threads, std::move(cpus)) {
  if (path == NumericPath::kBf16Tile) {
    Grow(sums_, threads * kernels.bf16_scratch);
  }
}

std::string CpuOps::path_name() const {
  return std::string(NumericPathName(path_)) + "/kv-" + KvTypeName(kv_type_) + "/r1";
}

std::unique_ptr<PackedMatrix> CpuOps::PackAs(const RawMatrix& raw, WeightType type) {
  auto matrix = std::make_unique<CpuMatrix>(type, raw.rows, raw.cols, order_, nodes_);
  pool_.ForEach(matrix->tiles(), [&](int64_t tile, int) { matrix->PackTile(raw, tile); });
  return matrix;
}

PackFormat CpuOps::pack_format() const {
  return {order_ == PackOrder::kLanes ? "lanes" : "tiles", kPackRevision};
}

size_t CpuOps::PackedBytes(WeightType type, int64_t rows, int64_t cols) const {
  return static_cast<size_t>(TilesOf(rows) * TileBytes(type, cols, order_));
}

std::unique_ptr<PackedMatrix> CpuOps::Restore(WeightType type, int64_t rows, int64_t cols,
                                              const Fill& fill) {
  auto matrix = std::make_unique<CpuMatrix>(type, rows, cols, order_, nodes_);
  const std::span<std::byte> room = matrix->room();
  const auto pieces = static_cast<int64_t>((room.size() + kRestorePiece - 1) / kRestorePiece);
  std::atomic<bool> filled = true;
  pool_.ForEach(pieces, [&](int64_t i, int) {
    const size_t offset = static_cast<size_t>(i) * kRestorePiece;
    const size_t bytes = std::min(kRestorePiece, room.size() - offset);
    if (filled && !fill(offset, room.subspan(offset, bytes))) filled = false;
  });
  if (!filled) return nullptr;
  return matrix;
}

void CpuOps::Embed(const PackedMatrix& table, std::span<const int32_t> ids, Matrix out) {
  const WeightsView& view = CpuOf(table).view();
  SETU_KERNEL_CHECK(out.rows == static_cast<int64_t>(ids.size()) && out.cols == view.cols,
                    "one output row per id, as wide as the table");
  ForEachRow(pool_, out.rows, out.cols, [&](int64_t row, int) {
    SETU_KERNEL_CHECK(ids[row] >= 0 && ids[row] < view.rows, "ids are within the table");
    kernels_.embed(view, ids[row], out.Row(row));
  });
}

void CpuOps::TurnHeads(float* heads, int64_t cols, int64_t head_dim, const float* norm, float eps,
                       const RopeTable& table, int64_t position, RopeKind kind) const {
  const int64_t angle = position * (table.rotary_dim / 2);
  for (float* head = heads; head < heads + cols; head += head_dim) {
    if (norm != nullptr) kernels_.rms_norm(head, norm, eps, head_dim, head);
    kernels_.rope(head, table.cos + angle, table.sin + angle, table.rotary_dim, kind);
  }
}

void CpuOps::StoreHeads(const float* k, const float* v, int64_t position,
                        const SequenceRows& sequence, const KvLayer& kv) const {
  const int64_t head_bytes =
      static_cast<int64_t>(KvHeadBytes(kv.type, kv.head_dim, kv.block_tokens));
  const int64_t slot = position % kv.block_tokens;
  uint8_t* keys =
      reinterpret_cast<uint8_t*>(kv.base) +
      sequence.blocks[position / kv.block_tokens] * static_cast<int64_t>(kv.block_stride);
  uint8_t* values = keys + kv.kv_heads * head_bytes;
  const auto scale = [&](uint8_t* head) {  // of those at the end, where the type has scales
    return reinterpret_cast<float*>(head + head_bytes) - kv.block_tokens + slot;
  };
  for (int64_t head = 0; head < kv.kv_heads; ++head, keys += head_bytes, values += head_bytes) {
    kernels_.store_kv(k + head * kv.head_dim, kv.head_dim, kv.type,
                      KeyPlace(kv.type, kv.head_dim, kv.block_tokens, slot), keys, scale(keys));
    kernels_.store_kv(v + head * kv.head_dim, kv.head_dim, kv.type,
                      ValuePlace(kv.type, kv.head_dim, slot), values, scale(values));
  }
}

void CpuOps::RopeAndStoreKv(Matrix q, Matrix k, ConstMatrix v,
                            std::span<const SequenceRows> sequences, const HeadNorms& norms,
                            const RopeTable& table, RopeKind kind, const KvLayer& kv) {
  SETU_KERNEL_CHECK(kv.type == kv_type(), "the KV type is that of the numeric path");
  SETU_KERNEL_CHECK(kv.head_dim > 0 && q.cols % kv.head_dim == 0, "heads divide the row");
  SETU_KERNEL_CHECK(k.cols == kv.kv_heads * kv.head_dim && v.cols == k.cols,
                    "K and V rows hold one vector per KV head");
  SETU_KERNEL_CHECK(k.rows == q.rows && v.rows == q.rows, "q, K and V have the same rows");
  SETU_KERNEL_CHECK(table.rotary_dim % 2 == 0 && table.rotary_dim <= kv.head_dim,
                    "pairs of a head turn");
  SETU_KERNEL_CHECK(kv.block_tokens % 16 == 0, "a vector of keys lies in one block");
  CheckSequences(sequences, q.rows, kv.block_tokens);
  for (const SequenceRows& s : sequences) {
    SETU_KERNEL_CHECK(s.start + s.rows <= table.positions, "positions are within the table");
  }
  ForEachRow(pool_, q.rows, q.cols + 2 * k.cols, [&](int64_t row, int) {
    const SequenceRows* s = SequenceOf(sequences, row);
    if (s == nullptr) return;
    const int64_t position = s->start + row - s->first_row;
    TurnHeads(q.Row(row), q.cols, kv.head_dim, norms.q, norms.eps, table, position, kind);
    TurnHeads(k.Row(row), k.cols, kv.head_dim, norms.k, norms.eps, table, position, kind);
    StoreHeads(k.Row(row), v.Row(row), position, *s, kv);
  });
}

bool CpuOps::AttendsInBf16() const {
  return path_ == NumericPath::kBf16Tile &&
         (kv_type_ == KvType::kBF16 || kv_type_ == KvType::kInt8);
}

// Queries of a piece: as many as share K and V well, and so few that there is work for all threads.
int64_t CpuOps::PieceQueries(std::span<const SequenceRows> sequences, int64_t heads) const {
  if (!AttendsInBf16()) return kPieceQueries;
  int64_t all = 0, queries = kPairPieceQueries;
  for (const SequenceRows& s : sequences) all += s.rows * heads;
  while (queries > kPieceQueries && all < 4 * threads() * queries) queries /= 2;
  return queries;
}

// The KV heads of a block lie side by side: a piece of few queries takes as many of them as leaves
// work for all threads, so that it reads whole pages.
void CpuOps::CutAttention(std::span<const SequenceRows> sequences, int64_t group,
                          int64_t kv_heads) {
  const int64_t queries = PieceQueries(sequences, group * kv_heads);
  const int64_t rows = std::max<int64_t>(1, queries / group);
  const int64_t wanted = std::ssize(sequences) * kv_heads / (4 * threads());
  pieces_.clear();
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (int64_t first = 0; first < sequences[s].rows; first += rows) {
      const int64_t count = std::min(rows, sequences[s].rows - first);
      const int64_t room = std::max<int64_t>(1, queries / PaddedQueries(count * group));
      const int64_t heads = std::clamp<int64_t>(wanted, 1, std::min(room, kv_heads));
      for (int64_t head = 0; head < kv_heads; head += heads) {
        pieces_.push_back({s, {head, std::min(heads, kv_heads - head), first, count}});
      }
    }
  }
}

void CpuOps::Attention(ConstMatrix q, std::span<const SequenceRows> sequences,
                       const AttentionShape& shape, const KvLayer& kv, Matrix out) {
  SETU_KERNEL_CHECK(kv.type == kv_type(), "the KV type is that of the numeric path");
  SETU_KERNEL_CHECK(kv.kv_heads > 0 && shape.heads % kv.kv_heads == 0,
                    "query heads divide among KV heads");
  SETU_KERNEL_CHECK(q.cols == shape.heads * kv.head_dim && out.cols == q.cols && out.rows == q.rows,
                    "q and out hold one vector per query head");
  CheckSequences(sequences, q.rows, kv.block_tokens);
  const int64_t group = shape.heads / kv.kv_heads;
  CutAttention(sequences, group, kv.kv_heads);
  const auto attention = AttendsInBf16() ? kernels_.attention_bf16 : kernels_.attention;
  const int64_t scratch = AttendsInBf16() ? PairAttentionScratchFloats(kv.head_dim, group)
                                          : AttentionScratchFloats(kv.head_dim, group);
  const int64_t head_bytes =
      static_cast<int64_t>(KvHeadBytes(kv.type, kv.head_dim, kv.block_tokens));
  Grow(scratch_, scratch * threads());
  pool_.ForEach(static_cast<int64_t>(pieces_.size()), [&](int64_t i, int thread) {
    const SequenceRows& s = sequences[pieces_[i].sequence];
    const AttentionArgs args = {q.Row(s.first_row),
                                q.stride,
                                out.Row(s.first_row),
                                out.stride,
                                s.start,
                                s.blocks.data(),
                                shape.heads,
                                kv.kv_heads,
                                kv.head_dim,
                                shape.scale,
                                shape.soft_cap,
                                shape.window,
                                reinterpret_cast<const uint8_t*>(kv.base),
                                static_cast<int64_t>(kv.block_stride),
                                kv.block_tokens,
                                head_bytes,
                                kv.type};
    attention(args, pieces_[i].piece, scratch_.data() + thread * scratch);
  });
}

}  // namespace setu::kernels
