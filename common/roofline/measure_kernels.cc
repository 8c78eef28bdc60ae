// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/measure_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/roofline/timing.h"

namespace setu::roofline {
namespace {

using engine::ModelRunner;
using kernels::PackedMatrix;
using kernels::WeightType;

constexpr int kRuns = 4;              // the fastest counts; the first fills the caches
constexpr double kLongRun = 5e-3;     // seconds; in all, after which nothing is repeated
constexpr double kLongestRun = 3e-2;  // seconds, expected; longer ones are not tried
constexpr double kLeast = 1e-9;       // seconds of what is too short to be seen
constexpr int kCalls = 64;
constexpr int64_t kFewTokens = 16, kManyTokens = 512;  // that attention sees
constexpr int64_t kMostKvBytes = 16 << 20;             // that attention is timed with
constexpr std::byte kSmallNumbers{0x11};               // of whatever type, when repeated
constexpr int64_t kUnknownCache = 8 << 20;
constexpr int64_t kAdvisedSide = 1024;  // of matrices that the model might have

std::vector<float> RandomRows(int64_t values) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> out(values);
  for (float& value : out) value = uniform(engine);
  return out;
}

// `run` answers what it took.
double Fastest(const auto& run) {
  double fastest = run();
  double passed = fastest;
  for (int i = 1; i < 2 || (i < kRuns && passed < kLongRun); ++i) {
    const double seconds = run();
    fastest = std::min(fastest, seconds);
    passed += seconds;
  }
  return fastest;
}

// Seconds of each of the timed rows: measured, or where that would take too long or is more than
// `most_rows`, as `growth` has it from the rows before.
SecondsByRows TimeRows(int64_t most_rows, const auto& growth, const auto& time) {
  SecondsByRows seconds{};
  for (size_t i = 0; i < kTimedRows.size(); ++i) {
    const double expected = i == 0 ? 0.0 : seconds[i - 1] * growth(i);
    const bool tried = i == 0 || (expected < kLongestRun && kTimedRows[i] <= most_rows);
    seconds[i] = tried ? time(kTimedRows[i]) : expected;
  }
  return seconds;
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

// A Linear of random rows, into memory of its own.
double TimeLinear(kernels::Ops& ops, const PackedMatrix& weights, int64_t rows) {
  const std::vector<float> x = RandomRows(rows * weights.cols());
  std::vector<float> out(rows * weights.rows());
  const kernels::LinearOutput output = {.weights = &weights,
                                        .out = {out.data(), rows, weights.rows(), weights.rows()}};
  const kernels::ConstMatrix input(x.data(), rows, weights.cols(), weights.cols());
  return Fastest([&] { return SecondsOf([&] { ops.Linear(input, {&output, 1}); }); });
}

std::unique_ptr<PackedMatrix> RandomSquare(kernels::Ops& ops, int64_t side, WeightType type) {
  const std::vector<float> values = RandomRows(side * side);
  return ops.PackAs(
      {.rows = side, .cols = side, .data = reinterpret_cast<const std::byte*>(values.data())},
      type);
}

// What a Linear takes that has next to nothing to do.
double TimeCall(kernels::Ops& ops) {
  const auto weights = RandomSquare(ops, 32, WeightType::kF32);
  double least = TimeLinear(ops, *weights, 1);
  for (int i = 1; i < kCalls; ++i) least = std::min(least, TimeLinear(ops, *weights, 1));
  return least;
}

// Computing alone: the calls are no part of it.
KernelRates::Product TimeProduct(kernels::Ops& ops, const PackedMatrix& weights, double call) {
  const auto growth = [](size_t i) { return 1.0 * kTimedRows[i] / kTimedRows[i - 1]; };
  SecondsByRows seconds = TimeRows(kTimedRows.back(), growth, [&](int64_t rows) {
    return std::max(TimeLinear(ops, weights, rows) - call, kLeast);
  });
  const double values = 1.0 * weights.rows() * weights.cols();
  for (double& s : seconds) s /= values;
  return {weights.type(), seconds};
}

// One sequence of so many rows from position 0, in memory of its own.
class Chunk {
 public:
  Chunk(ModelRunner& runner, int64_t rows)
      : runner_(runner),
        ids_(rows, 0),
        blocks_(kv::BlocksFor(rows, runner.options().block_tokens)),
        logit_rows_(std::min<int64_t>(rows, runner.options().max_logits)) {
    const kv::KvLayout& layout = runner.fingerprint().layout;
    auto storage = kv::KvStorage::Create(layout, static_cast<int32_t>(blocks_.size()));
    SETU_CHECK(storage.ok(), "there is memory for the keys of one short chunk");
    storage_ = *std::move(storage);
    std::iota(blocks_.begin(), blocks_.end(), 0);
    std::iota(logit_rows_.begin(), logit_rows_.end(), 0);
    sequence_ = {.rows = rows, .blocks = blocks_};
    runner_.transformer().Embed(batch());
  }

  // Of a layer, the mean of several in turn, so that what each reads was last read long ago.
  double Layers(int32_t& next) {
    double passed = 0;
    int32_t count = 0;
    do {
      passed += SecondsOf([&] { runner_.transformer().Layer(next, batch(), *storage_, nullptr); });
      next = (next + 1) % runner_.config().layers;
    } while (++count < runner_.config().layers && passed < kLongRun);
    return passed / count;
  }
  double Logits() {
    return SecondsOf([&] { runner_.transformer().Logits(batch()); });
  }

 private:
  model::ForwardBatch batch() const {
    return {.ids = ids_, .sequences = {&sequence_, 1}, .logit_rows = logit_rows_};
  }

  ModelRunner& runner_;
  std::vector<int32_t> ids_;
  std::vector<kv::BlockId> blocks_;
  std::vector<int32_t> logit_rows_;
  std::unique_ptr<kv::KvStorage> storage_;
  kernels::SequenceRows sequence_;
};

// Of attention in one layer where sequences of `tokens` have `rows` new ones each: seconds of a
// sequence. Each has blocks of its own, and layers too as far as memory goes: the caches of the
// cores forget them between two runs, as they do between two steps.
double TimeAttention(ModelRunner& runner, int64_t rows, int64_t tokens) {
  const model::ModelConfig& config = runner.config();
  const kv::KvLayout& layout = runner.fingerprint().layout;
  const int64_t blocks = kv::BlocksFor(tokens, layout.block_tokens);
  const auto sequence_bytes = blocks * static_cast<int64_t>(layout.piece_bytes());
  const int64_t room = std::max<int64_t>(1, kMostKvBytes / sequence_bytes);
  const int64_t count = std::clamp<int64_t>(KernelRates::kChunkRows / rows, 1, room);
  const int64_t layers = std::clamp<int64_t>(room / count, 1, config.layers);
  std::vector<std::byte> memory(layers * count * sequence_bytes, kSmallNumbers);
  std::vector<int32_t> ids(count * blocks);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<kernels::SequenceRows> sequences;
  for (int64_t i = 0; i < count; ++i) {
    sequences.push_back(
        {i * rows, rows, tokens - rows, std::span(ids).subspan(i * blocks, blocks)});
  }
  const int64_t width = int64_t{config.heads} * config.head_dim;
  const std::vector<float> q = RandomRows(count * rows * width);
  std::vector<float> out(q.size());
  const kernels::AttentionShape shape = {
      .heads = config.heads, .scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim))};
  kernels::KvLayer kv = runner.storage().Layer(0);
  kv.block_stride = layout.piece_bytes();
  const auto run = [&] {
    for (int64_t layer = 0; layer < layers; ++layer) {
      kv.base = memory.data() + layer * count * sequence_bytes;
      runner.ops().Attention(kernels::ConstMatrix(q.data(), count * rows, width, width), sequences,
                             shape, kv, {out.data(), count * rows, width, width});
    }
  };
  return Fastest([&] { return SecondsOf(run); }) / static_cast<double>(layers * count);
}

KernelRates::Attention MeasureAttention(ModelRunner& runner, int64_t rows) {
  const int64_t context = runner.config().context_length;
  rows = std::min(rows, context);
  const auto time = [&](int64_t tokens) {
    tokens = std::min(std::max(tokens, rows), context);
    StepRows step;
    step.Add(rows, tokens - rows, false);
    return std::pair(static_cast<double>(step.pairs), TimeAttention(runner, rows, tokens));
  };
  const auto [few, short_seconds] = time(kFewTokens);
  const auto [many, long_seconds] = time(kManyTokens);
  KernelRates::Attention attention;
  if (many > few) attention.key = std::max(0.0, (long_seconds - short_seconds) / (many - few));
  attention.row = std::max(0.0, (short_seconds - attention.key * few) / static_cast<double>(rows));
  return attention;
}

}  // namespace

KernelRates MeasureKernels(ModelRunner& runner, int64_t l3_bytes) {
  const auto matrices = MatricesOf(runner.weights());
  const double call = TimeCall(runner.ops());
  KernelRates rates;
  const auto known = [&rates](WeightType type) {
    return std::ranges::count(rates.products, type, &KernelRates::Product::type) > 0;
  };
  for (const PackedMatrix* matrix : matrices) {
    if (known(matrix->type())) continue;
    std::vector<const PackedMatrix*> same = matrices;
    std::erase_if(same, [matrix](const PackedMatrix* m) { return m->type() != matrix->type(); });
    rates.products.push_back(TimeProduct(runner.ops(), Typical(same, l3_bytes), call));
  }
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_0}) {
    if (known(type)) continue;
    const auto weights = RandomSquare(runner.ops(), kAdvisedSide, type);
    rates.products.push_back(TimeProduct(runner.ops(), *weights, call));
  }
  rates.single = MeasureAttention(runner, 1);
  rates.chunk = MeasureAttention(runner, KernelRates::kChunkRows);

  const ModelShape shape = ShapeOf(runner.config(), runner.weights(), runner.fingerprint().layout);
  const auto layer_growth = [&](size_t i) {
    return rates.LayerProducts(shape, kTimedRows[i]) /
           rates.LayerProducts(shape, kTimedRows[i - 1]);
  };
  const auto logit_growth = [&](size_t i) {
    return rates.LogitProducts(shape, kTimedRows[i]) /
           rates.LogitProducts(shape, kTimedRows[i - 1]);
  };
  const int64_t most = std::min<int64_t>(runner.options().max_rows, runner.config().context_length);
  int32_t next = 0;
  rates.layer = TimeRows(most, layer_growth, [&](int64_t rows) {
    Chunk chunk(runner, rows);
    StepRows step;
    step.Add(rows, 0, false);
    const double seconds = Fastest([&] { return chunk.Layers(next); });
    return std::max(kLeast, seconds - rates.AttentionSeconds(step));
  });
  rates.logits = TimeRows(std::min<int64_t>(most, runner.options().max_logits), logit_growth,
                          [&](int64_t rows) {
                            Chunk chunk(runner, rows);
                            return Fastest([&] { return chunk.Logits(); });
                          });
  return rates;
}

}  // namespace setu::roofline
