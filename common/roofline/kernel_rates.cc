// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/kernel_rates.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <span>

#include "common/base/check.h"
#include "common/roofline/timing.h"

namespace setu::roofline {
namespace {

using kernels::PackedMatrix;

constexpr int kRuns = 4;              // the fastest counts; the first fills the caches
constexpr double kLongestRun = 4e-3;  // seconds; longer ones are not tried or not repeated
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

// Of that type, the largest that stays in the last cache with room for activations, or else the
// smallest.
const PackedMatrix& Typical(const std::vector<const PackedMatrix*>& matrices,
                            kernels::WeightType type, int64_t l3_bytes) {
  const auto room = static_cast<size_t>((l3_bytes > 0 ? l3_bytes : kUnknownCache) / 4);
  const PackedMatrix* best = nullptr;
  for (const PackedMatrix* matrix : matrices) {
    if (matrix->type() != type) continue;
    const auto better = [&](const PackedMatrix& a, const PackedMatrix& b) {
      const bool a_fits = a.bytes() <= room, b_fits = b.bytes() <= room;
      if (a_fits != b_fits) return a_fits;
      return a_fits ? a.bytes() > b.bytes() : a.bytes() < b.bytes();
    };
    if (best == nullptr || better(*matrix, *best)) best = matrix;
  }
  SETU_CHECK(best != nullptr, "a type of the shape is that of some matrix");
  return *best;
}

int64_t MostSequences(const kv::KvLayout& layout) {
  const auto piece = static_cast<int64_t>(layout.piece_bytes());
  return std::max<int64_t>(
      1, kMostKvBytes / (piece * kv::BlocksFor(kAttendedTokens, layout.block_tokens)));
}

SecondsByRows TimeProduct(kernels::Ops& ops, const PackedMatrix& weights) {
  const int64_t most = kTimedRows.back();
  const std::vector<float> x = RandomRows(most * weights.cols());
  std::vector<float> out(most * weights.rows());
  SecondsByRows seconds{};
  for (size_t i = 0; i < kTimedRows.size(); ++i) {
    const int64_t rows = kTimedRows[i];
    const double growth = i == 0 ? 0.0 : static_cast<double>(rows) / kTimedRows[i - 1];
    if (i > 0 && seconds[i - 1] * growth > kLongestRun) {
      seconds[i] = seconds[i - 1] * growth;
      continue;
    }
    const kernels::LinearOutput output = {
        .weights = &weights, .out = {out.data(), rows, weights.rows(), weights.rows()}};
    const kernels::ConstMatrix input(x.data(), rows, weights.cols(), weights.cols());
    seconds[i] = Fastest([&] { ops.Linear(input, {&output, 1}); });
  }
  for (double& s : seconds) s /= static_cast<double>(weights.rows() * weights.cols());
  return seconds;
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

double KernelRates::ProductSeconds(const ModelShape& shape, const StepRows& rows) const {
  double seconds = 0;
  for (const FormatValues& format : shape.formats) {
    for (const Product& product : products) {
      if (product.type != format.type) continue;
      seconds += static_cast<double>(format.layers) *
                 SecondsAt(product.per_value, static_cast<double>(rows.rows));
      if (rows.logits == 0) continue;
      seconds += static_cast<double>(format.logits) *
                 SecondsAt(product.per_value, static_cast<double>(rows.logits));
    }
  }
  return seconds;
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
    const PackedMatrix& typical = Typical(matrices, matrix->type(), l3_bytes);
    rates.products.push_back({matrix->type(), TimeProduct(runner.ops(), typical)});
  }
  rates.attention_single = TimeAttention(runner, 1);
  rates.attention_chunk = TimeAttention(runner, kTimedRows.back());
  return rates;
}

}  // namespace setu::roofline
