// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/kernel_rates.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <span>

#include "common/roofline/timing.h"

namespace setu::roofline {
namespace {

using kernels::PackedMatrix;

constexpr int kRuns = 4;              // the fastest counts; the first fills the caches
constexpr double kLongestRun = 4e-3;  // seconds; longer ones are not tried or not repeated
constexpr int kStreamedRuns = 2;
constexpr double kStreamedBytes = 32 << 20;  // of a run
constexpr double kLongestStream = 20e-3;     // seconds, expected; longer ones are not tried
constexpr int64_t kAttendedTokens = 256;
constexpr int64_t kMostKvBytes = 64 << 20;  // that attention is timed with
constexpr std::byte kSmallNumbers{0x11};    // of whatever type, when repeated
constexpr int64_t kUnknownCache = 8 << 20;

std::vector<float> RandomRows(int64_t values) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> out(values);
  for (float& value : out) value = uniform(engine);
  return out;
}

double Fastest(const auto& run) {
  double fastest = SecondsOf(run);
  double passed = fastest;
  for (int i = 1; i < kRuns && passed < kLongestRun; ++i) {
    const double seconds = SecondsOf(run);
    fastest = std::min(fastest, seconds);
    passed += seconds;
  }
  return fastest;
}

// The largest that stays in the last cache with room for activations, or else the smallest.
const PackedMatrix& Typical(const std::vector<const PackedMatrix*>& matrices, int64_t l3_bytes) {
  const auto room = static_cast<size_t>((l3_bytes > 0 ? l3_bytes : kUnknownCache) / 4);
  const auto worse = [room](const PackedMatrix* a, const PackedMatrix* b) {
    const bool a_fits = a->bytes() <= room, b_fits = b->bytes() <= room;
    if (a_fits != b_fits) return b_fits;
    return a_fits ? a->bytes() < b->bytes() : a->bytes() > b->bytes();
  };
  return **std::ranges::max_element(matrices, worse);
}

int64_t MostSequences(const kv::KvLayout& layout) {
  const auto piece = static_cast<int64_t>(layout.piece_bytes());
  return std::max<int64_t>(
      1, kMostKvBytes / (piece * kv::BlocksFor(kAttendedTokens, layout.block_tokens)));
}

double Values(const PackedMatrix& matrix) {
  return static_cast<double>(matrix.rows()) * static_cast<double>(matrix.cols());
}

// Multiplies random rows with matrices, into memory of its own.
class Multiplier {
 public:
  Multiplier(kernels::Ops& ops, std::span<const PackedMatrix* const> matrices) : ops_(ops) {
    int64_t rows = 0, cols = 0;
    for (const PackedMatrix* matrix : matrices) {
      rows = std::max(rows, matrix->rows());
      cols = std::max(cols, matrix->cols());
    }
    x_ = RandomRows(kTimedRows.back() * cols);
    out_.resize(kTimedRows.back() * rows);
  }
  void Run(const PackedMatrix& weights, int64_t rows) {
    const kernels::LinearOutput output = {
        .weights = &weights, .out = {out_.data(), rows, weights.rows(), weights.rows()}};
    ops_.Linear(kernels::ConstMatrix(x_.data(), rows, weights.cols(), weights.cols()),
                {&output, 1});
  }

 private:
  kernels::Ops& ops_;
  std::vector<float> x_, out_;
};

SecondsByRows TimeCached(Multiplier& multiplier, const PackedMatrix& weights) {
  SecondsByRows seconds{};
  for (size_t i = 0; i < kTimedRows.size(); ++i) {
    const int64_t rows = kTimedRows[i];
    const double growth = i == 0 ? 0.0 : static_cast<double>(rows) / kTimedRows[i - 1];
    const double expected = i == 0 ? 0.0 : seconds[i - 1] * growth;
    seconds[i] =
        expected > kLongestRun ? expected : Fastest([&] { multiplier.Run(weights, rows); });
  }
  for (double& s : seconds) s /= Values(weights);
  return seconds;
}

// Takes the matrices in turn, so that what a run reads was last read long ago. A run that would
// take too long is left out: computing alone stands for it.
SecondsByRows TimeStreamed(Multiplier& multiplier, const std::vector<const PackedMatrix*>& matrices,
                           const SecondsByRows& cached) {
  SecondsByRows seconds = cached;
  size_t next = 0;
  for (size_t i = 0; i < kTimedRows.size(); ++i) {
    for (int run = 0; run < kStreamedRuns; ++run) {
      std::vector<const PackedMatrix*> slice;
      double values = 0, bytes = 0;
      do {
        slice.push_back(matrices[next++ % matrices.size()]);
        values += Values(*slice.back());
        bytes += static_cast<double>(slice.back()->bytes());
      } while (slice.size() < matrices.size() && bytes < kStreamedBytes &&
               values * cached[i] < kLongestRun);
      if (values * cached[i] > kLongestStream) break;
      const double took = SecondsOf([&] {
        for (const PackedMatrix* matrix : slice) multiplier.Run(*matrix, kTimedRows[i]);
      });
      seconds[i] = run == 0 ? took / values : std::min(seconds[i], took / values);
    }
  }
  return seconds;
}

KernelRates::Product TimeProduct(kernels::Ops& ops, kernels::WeightType type,
                                 std::vector<const PackedMatrix*> matrices, int64_t l3_bytes) {
  std::erase_if(matrices, [type](const PackedMatrix* matrix) { return matrix->type() != type; });
  Multiplier multiplier(ops, matrices);
  const SecondsByRows cached = TimeCached(multiplier, Typical(matrices, l3_bytes));
  return {type, cached, TimeStreamed(multiplier, matrices, cached)};
}

// Seconds of one operation where each sequence has `rows` rows. Each has blocks of its own, which
// the caches of the cores forget between two runs, as they do between two steps.
double TimeAttention(engine::ModelRunner& runner, int64_t rows) {
  const model::ModelConfig& config = runner.config();
  const kv::KvLayout& layout = runner.fingerprint().layout;
  const int64_t tokens = std::min<int64_t>(kAttendedTokens, config.context_length);
  rows = std::min(rows, tokens);
  const int64_t count = std::clamp<int64_t>(kTimedRows.back() / rows, 1, MostSequences(layout));
  const int32_t blocks = kv::BlocksFor(tokens, layout.block_tokens);
  std::vector<std::byte> memory(count * blocks * layout.piece_bytes(), kSmallNumbers);
  kernels::KvLayer kv = runner.storage().Layer(0);
  kv.base = memory.data();
  kv.block_stride = layout.piece_bytes();
  std::vector<int32_t> ids(count * blocks);
  std::iota(ids.begin(), ids.end(), 0);
  StepRows step;
  std::vector<kernels::SequenceRows> sequences;
  for (int64_t i = 0; i < count; ++i, step.Add(rows, tokens - rows, false)) {
    sequences.push_back(
        {step.rows, rows, tokens - rows, std::span(ids).subspan(i * blocks, blocks)});
  }
  const int64_t width = int64_t{config.heads} * config.head_dim;
  const std::vector<float> q = RandomRows(step.rows * width);
  std::vector<float> out(q.size());
  const kernels::AttentionShape shape = {
      .heads = config.heads, .scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim))};
  const double seconds = Fastest([&] {
    runner.ops().Attention(kernels::ConstMatrix(q.data(), step.rows, width, width), sequences,
                           shape, kv, {out.data(), step.rows, width, width});
  });
  return seconds / (4.0 * static_cast<double>(step.pairs * width));
}

}  // namespace

double SecondsAt(const SecondsByRows& seconds, double rows) {
  for (size_t i = 1; i < kTimedRows.size(); ++i) {
    const auto low = static_cast<double>(kTimedRows[i - 1]);
    const auto high = static_cast<double>(kTimedRows[i]);
    if (rows > high) continue;
    const double share = std::max(0.0, (rows - low) / (high - low));
    return seconds[i - 1] + share * (seconds[i] - seconds[i - 1]);
  }
  return seconds.back() * rows / static_cast<double>(kTimedRows.back());
}

double KernelRates::Sum(SecondsByRows Product::*per_value, const ModelShape& shape,
                        const StepRows& rows) const {
  double seconds = 0;
  for (const FormatValues& format : shape.formats) {
    for (const Product& product : products) {
      if (product.type != format.type) continue;
      seconds += static_cast<double>(format.layers) *
                 SecondsAt(product.*per_value, static_cast<double>(rows.rows));
      if (rows.logits == 0) continue;
      seconds += static_cast<double>(format.logits) *
                 SecondsAt(product.*per_value, static_cast<double>(rows.logits));
    }
  }
  return seconds;
}

double KernelRates::ProductSeconds(const ModelShape& shape, const StepRows& rows) const {
  return Sum(&Product::per_value, shape, rows);
}

double KernelRates::StreamedSeconds(const ModelShape& shape, const StepRows& rows) const {
  return Sum(&Product::streamed, shape, rows);
}

double KernelRates::AttentionSeconds(const StepWork& work, const StepRows& rows) const {
  if (rows.sequences == 0) return 0;
  const double each = static_cast<double>(rows.rows) / static_cast<double>(rows.sequences);
  const auto chunk = static_cast<double>(kTimedRows.back());
  const double share = std::min(1.0, (each - 1) / (chunk - 1));
  return work.attention_operations *
         (attention_single + share * (attention_chunk - attention_single));
}

KernelRates MeasureKernels(engine::ModelRunner& runner, int64_t l3_bytes) {
  const auto matrices = MatricesOf(runner.weights());
  KernelRates rates;
  for (const PackedMatrix* matrix : matrices) {
    const auto known =
        std::ranges::find(rates.products, matrix->type(), &KernelRates::Product::type);
    if (known != rates.products.end()) continue;
    rates.products.push_back(TimeProduct(runner.ops(), matrix->type(), matrices, l3_bytes));
  }
  rates.attention_single = TimeAttention(runner, 1);
  rates.attention_chunk = TimeAttention(runner, kTimedRows.back());
  return rates;
}

}  // namespace setu::roofline
