// SPDX-License-Identifier: Apache-2.0
// The products of cpu_ops.h.
#include <algorithm>
#include <utility>

#include "kernels/check.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/packed_layout.h"
#include "kernels/cpu/packed_matrix.h"
#include "kernels/cpu/pieces.h"

namespace setu::kernels {
namespace {

// A matrix of the rows and columns that `input` has.
ConstMatrix SourceOf(const LinearInput& input) {
  if (const auto* plain = std::get_if<ConstMatrix>(&input)) return *plain;
  return std::get<Normed>(input).x;
}

void CheckShapes(int64_t rows, int64_t cols, const LinearOutput& output) {
  SETU_KERNEL_CHECK(output.weights->cols() == cols, "a product's inputs fit its weights");
  SETU_KERNEL_CHECK(output.out.rows == rows && output.out.cols == output.weights->rows(),
                    "an output has a row per row of x and a column per row of the weights");
}

}  // namespace

// The input's row, made in `out` where it does not stand in memory.
const float* CpuOps::MakeRow(const LinearInput& input, int64_t row, float* out) const {
  if (const auto* plain = std::get_if<ConstMatrix>(&input)) return plain->Row(row);
  const auto& normed = std::get<Normed>(input);
  kernels_.rms_norm(normed.x.Row(row), normed.weight, normed.eps, normed.x.cols, out);
  return out;
}

// Quantises or rounds all rows, and gives them as floats, each where wanted.
ConstMatrix CpuOps::Prepare(const LinearInput& input, Wanted wanted) {
  const ConstMatrix source = SourceOf(input);
  const auto* plain = std::get_if<ConstMatrix>(&input);
  if (plain != nullptr && !wanted.int8 && !wanted.rounded) return *plain;
  const int64_t rows = source.rows, cols = source.cols;
  const bool keep = wanted.floats && plain == nullptr;
  // By one thread: those of a tile share their lines, which two cores would take from each other.
  const int64_t together = wanted.rounded ? kernels_.round_rows : 1;
  Grow(made_, plain != nullptr ? 0 : cols * (keep ? rows : together * threads()));
  if (wanted.int8) {
    const int64_t groups = rows * (cols / kGroup) + kQuantisedRows - 1;
    Grow(q_, groups * kGroup);
    Grow(q_scales_, groups);
    Grow(q_sums_, groups);
  }
  if (wanted.rounded) Grow(rounded_, RoundedBytes(rows, cols));
  ForEachRow(pool_, (rows + together - 1) / together, together * cols, [&](int64_t i, int thread) {
    const int64_t first = i * together, count = std::min(together, rows - first);
    float* made = made_.data() + (keep ? first : thread * together) * cols;
    for (int64_t row = first; row < first + count; ++row) {
      const float* x = MakeRow(input, row, made + (row - first) * cols);
      if (!wanted.int8) continue;
      kernels_.quantise(x, cols, row, rows, Quantised());
    }
    if (!wanted.rounded) return;
    const float* x = plain != nullptr ? plain->Row(first) : made;
    const int64_t stride = plain != nullptr ? plain->stride : cols;
    kernels_.round(x, stride, cols, first, count, rows, rounded_.data());
  });
  return keep ? ConstMatrix(made_.data(), rows, cols, cols) : source;
}

LinearArgs CpuOps::ArgsOf(ConstMatrix x, const LinearOutput& output) {
  LinearArgs args = {};
  args.weights = CpuOf(*output.weights).view();
  args.rows = x.rows;
  args.x = x.data;
  args.x_stride = x.stride;
  args.bias = output.bias;
  args.out = output.out.data;
  args.out_stride = output.out.stride;
  args.accumulate = output.accumulate;
  if (path_ == NumericPath::kInt8G32 && IsQuantised(args.weights.type)) {
    args.quantised = Quantised();
  }
  if (path_ == NumericPath::kBf16Tile) args.rounded = rounded_.data();
  return args;
}

CpuOps::Wanted CpuOps::WantedBy(const PackedMatrix& weights) const {
  const bool int8 = path_ == NumericPath::kInt8G32 && IsQuantised(weights.type());
  const bool rounded = path_ == NumericPath::kBf16Tile;
  return {.floats = !int8 && !rounded, .int8 = int8, .rounded = rounded};
}

// `tiles` of weights, `bytes` in all, times x.
CpuOps::Cut CpuOps::CutOf(ConstMatrix x, int64_t tiles, size_t bytes) const {
  const bool rounded = path_ == NumericPath::kBf16Tile;
  const int64_t panel = rounded ? kernels_.bf16_panel : 1;
  if (rounded && kernels_.bf16_share > 0 && x.rows > 2 * kernels_.round_rows) {
    constexpr int64_t kPiecesEach = 4;  // so that a thread that is delayed leaves some to others
    const int64_t most = std::max(panel, tiles / (kPiecesEach * pool_.threads()));
    return {tiles, std::max<int64_t>(1, tiles / std::min(kernels_.bf16_share, most)), panel};
  }
  const double share = std::max(static_cast<double>(bytes) / (kPieceBytes * tiles),
                                static_cast<double>(x.rows * x.cols * kTileRows) / kPieceProducts);
  return {tiles, Pieces(tiles, share, pool_.threads()), panel};
}

void CpuOps::Multiply(const LinearArgs& args, int64_t begin, int64_t end, int thread) {
  if (args.rounded != nullptr) {
    kernels_.linear_bf16(args, begin, end, sums_.data() + thread * kernels_.bf16_scratch);
    return;
  }
  const auto product = args.quantised.q != nullptr ? kernels_.linear_int8 : kernels_.linear_f32;
  product(args, begin, end);
}

// Products of an input that Prepare has seen.
void CpuOps::MultiplyAll(ConstMatrix x, std::span<const LinearOutput> outputs) {
  int64_t tiles = 0;
  size_t bytes = 0;
  for (const LinearOutput& output : outputs) {
    tiles += CpuOf(*output.weights).tiles();
    bytes += output.weights->bytes();
  }
  const Cut cut = CutOf(x, tiles, bytes);
  pool_.ForEach(cut.pieces, [&](int64_t i, int thread) {
    int64_t base = 0;  // tiles of the outputs before
    for (const LinearOutput& output : outputs) {
      const int64_t own = CpuOf(*output.weights).tiles();
      const int64_t begin = std::max<int64_t>(0, cut.Border(i) - base);
      const int64_t end = std::min(own, cut.Border(i + 1) - base);
      base += own;
      if (begin < end) Multiply(ArgsOf(x, output), begin, end, thread);
    }
  });
}

void CpuOps::Linear(const LinearInput& input, std::span<const LinearOutput> outputs) {
  const ConstMatrix source = SourceOf(input);
  Wanted wanted;
  for (const LinearOutput& output : outputs) {
    CheckShapes(source.rows, source.cols, output);
    wanted.Add(WantedBy(*output.weights));
  }
  if (source.rows == 0) return;
  MultiplyAll(Prepare(input, wanted), outputs);
}

// Where a kernel gates, the input of `down` leaves it rounded and in its place; else it stands in
// memory between the two.
void CpuOps::FeedForward(const LinearInput& input, const PackedMatrix& gate, const PackedMatrix& up,
                         const LinearOutput& down) {
  const ConstMatrix source = SourceOf(input);
  const int64_t rows = source.rows, cols = gate.rows();  // of what is gated
  SETU_KERNEL_CHECK(up.rows() == cols && gate.cols() == up.cols(), "gate and up have one shape");
  SETU_KERNEL_CHECK(gate.cols() == source.cols, "a product's inputs fit its weights");
  CheckShapes(rows, cols, down);
  if (rows == 0) return;
  Wanted wanted = WantedBy(gate);
  wanted.Add(WantedBy(up));
  const ConstMatrix x = Prepare(input, wanted);
  const Cut cut = CutOf(x, CpuOf(gate).tiles(), gate.bytes() + up.bytes());
  if (wanted.rounded && gate.type() == up.type() && kernels_.bf16_gates) {
    Grow(next_, RoundedBytes(rows, cols));
    LinearArgs args = ArgsOf(x, {&gate, nullptr, {}});
    args.up = CpuOf(up).view().tiles;
    args.gated = next_.data();
    pool_.ForEach(cut.pieces, [&](int64_t i, int thread) {
      Multiply(args, cut.Border(i), cut.Border(i + 1), thread);
    });
    std::swap(rounded_, next_);
    return MultiplyAll({nullptr, rows, cols, cols}, {&down, 1});
  }
  Grow(gated_, rows * cols);
  const Matrix gated(gated_.data(), rows, cols, cols);
  Gate(cut, x, gate, up, gated);
  Linear(ConstMatrix(gated), {&down, 1});
}

// Both halves of a piece are kept close together until they are gated: rows of `out` may share the
// sets of a cache.
void CpuOps::Gate(const Cut& cut, ConstMatrix x, const PackedMatrix& gate, const PackedMatrix& up,
                  Matrix out) {
  const int64_t width = cut.Widest() * kTileRows;
  Grow(halves_, threads() * 2 * x.rows * width);
  pool_.ForEach(cut.pieces, [&](int64_t i, int thread) {
    const int64_t begin = cut.Border(i), end = cut.Border(i + 1), first = begin * kTileRows;
    if (begin == end) return;
    const int64_t count = std::min(end * kTileRows, out.cols) - first;
    float* own = halves_.data() + thread * 2 * x.rows * width;
    const auto multiply = [&](const PackedMatrix& weights, float* to) {
      LinearArgs args = ArgsOf(x, {&weights, nullptr, {to, x.rows, count, width}});
      args.weights.tiles += begin * args.weights.tile_bytes;
      args.weights.rows -= first;
      Multiply(args, 0, end - begin, thread);
    };
    multiply(gate, own);
    multiply(up, own + x.rows * width);
    for (int64_t row = 0; row < x.rows; ++row) {
      const float* g = own + row * width;
      kernels_.silu_mul(g, g + x.rows * width, count, out.Row(row) + first);
    }
  });
}

}  // namespace setu::kernels
