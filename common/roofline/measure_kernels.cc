// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/measure_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/roofline/kernel_timing.h"
#include "common/roofline/measure_products.h"
#include "common/roofline/timing.h"
#include "kernels/device.h"

namespace setu::roofline {
namespace {

using engine::ModelRunner;
using kernels::PackedMatrix;

constexpr double kRun = 5e-3;  // seconds of a run that goes from layer to layer
constexpr int64_t kFewTokens = 16, kManyTokens = 512;  // that attention sees
constexpr int64_t kSequences = 16;                     // whose attention is timed together
constexpr int64_t kKvBytes = 16 << 20;                 // of their K and V, as far as layers go
constexpr int64_t kForgotten = 64 << 20;               // bytes of weights that are read in between
constexpr std::byte kSmallNumbers{0x11};               // of whatever type, when repeated

// Blocks like the pool's, beside it.
std::unique_ptr<kv::KvStorage> ScratchBlocks(const kv::KvLayout& layout, int64_t blocks) {
  auto storage = kv::KvStorage::Create(layout, static_cast<int32_t>(blocks));
  SETU_CHECK(storage.ok(), "there is memory for the keys of a chunk");
  for (int32_t block = 0; block < blocks; ++block) {
    for (int32_t layer = 0; layer < layout.layers; ++layer) {
      std::ranges::fill((*storage)->Piece(block, layer), kSmallNumbers);
    }
  }
  return *std::move(storage);
}

// Sequences of a batch, and what their step adds up to.
class Sequences {
 public:
  explicit Sequences(const kv::KvStorage& storage)
      : block_tokens_(storage.layout().block_tokens), blocks_(storage.blocks()) {
    std::iota(blocks_.begin(), blocks_.end(), 0);
  }
  Sequences(const Sequences&) = delete;  // what is added looks at its blocks
  Sequences& operator=(const Sequences&) = delete;

  // `rows` new tokens after `start` others, in the storage's blocks from `block` on.
  void Add(int64_t rows, int64_t start, int64_t block) {
    const int64_t count = kv::BlocksFor(start + rows, block_tokens_);
    all_.push_back({step_.rows, rows, start, std::span(blocks_).subspan(block, count)});
    step_.Add(rows, start, false);
  }
  std::span<const kernels::SequenceRows> all() const { return all_; }
  const StepRows& step() const { return step_; }

 private:
  const int32_t block_tokens_;
  std::vector<kv::BlockId> blocks_;
  std::vector<kernels::SequenceRows> all_;
  StepRows step_;
};

// Reads on through the layers' weights, so that the caches forget what else was in them: what a
// step reads was last read a step ago.
class Forgetter {
 public:
  explicit Forgetter(ModelRunner& runner) : ops_(runner.ops()), all_(MatricesOf(runner.weights())) {
    all_.pop_back();  // the output matrix
  }
  void operator()() {
    std::vector<const PackedMatrix*> read;
    int64_t bytes = 0;
    do {
      read.push_back(all_[next_]);
      bytes += static_cast<int64_t>(read.back()->bytes());
      next_ = (next_ + 1) % all_.size();
    } while (bytes < kForgotten && read.size() < all_.size());
    ops_.ProbeReads(read);
  }

 private:
  kernels::Ops& ops_;
  std::vector<const PackedMatrix*> all_;
  size_t next_ = 0;
};

// Mean seconds of a layer, of several in turn, so that what each reads was last read long ago.
class LayerTimer {
 public:
  explicit LayerTimer(int32_t layers) : layers_(layers) {}
  double Mean(const auto& run) {
    double passed = 0;
    int32_t count = 0;
    do {
      passed += SecondsOf([&] { run(next_); });
      next_ = (next_ + 1) % layers_;
    } while (++count < layers_ && passed < kRun);
    return passed / count;
  }

 private:
  const int32_t layers_;
  int32_t next_ = 0;
};

// Steps of `rows` tokens, as the forward pass runs its parts: up to kChunkRows as a batch of
// sequences with one each, in blocks of their own as far as these go, beyond that as one chunk.
class Step {
 public:
  Step(ModelRunner& runner, kv::KvStorage& storage, int64_t rows)
      : runner_(runner),
        storage_(storage),
        ids_(rows, 0),
        sequences_(storage),
        logit_rows_(std::min<int64_t>(rows, runner.options().max_logits)) {
    if (rows > KernelRates::kChunkRows) {
      sequences_.Add(rows, 0, 0);
    } else {
      for (int64_t i = 0; i < rows; ++i) {
        sequences_.Add(1, i / storage.blocks(), i % storage.blocks());
      }
    }
    std::iota(logit_rows_.begin(), logit_rows_.end(), 0);
    runner_.transformer().Embed(batch());
  }
  const StepRows& rows() const { return sequences_.step(); }
  double Layer(LayerTimer& timer) {
    return timer.Mean(
        [this](int32_t layer) { runner_.transformer().Layer(layer, batch(), storage_, nullptr); });
  }
  double Logits() {
    return SecondsOf([this] { runner_.transformer().Logits(batch()); });
  }

 private:
  model::ForwardBatch batch() const {
    return {.ids = ids_, .sequences = sequences_.all(), .logit_rows = logit_rows_};
  }

  ModelRunner& runner_;
  kv::KvStorage& storage_;
  std::vector<int32_t> ids_;
  Sequences sequences_;
  std::vector<int32_t> logit_rows_;
};

// Times attention by kernels that may be others than the model's. Its calls are no part of it.
class AttentionTimer {
 public:
  AttentionTimer(ModelRunner& runner, kernels::Ops& ops, kv::KvLayout layout, double call)
      : config_(runner.config()), ops_(ops), call_(call), forget_(runner) {
    const int64_t blocks = kSequences * kv::BlocksFor(kManyTokens, layout.block_tokens);
    const auto layers = kKvBytes / (blocks * static_cast<int64_t>(layout.piece_bytes()));
    layout.layers = static_cast<int32_t>(std::clamp<int64_t>(layers, 1, layout.layers));
    storage_ = ScratchBlocks(layout, blocks);
  }

  KernelRates::Attention Measure(int64_t rows);

 private:
  double Seconds(int64_t rows, int64_t tokens);

  const model::ModelConfig& config_;
  kernels::Ops& ops_;
  const double call_;  // seconds
  Forgetter forget_;
  std::unique_ptr<kv::KvStorage> storage_;
};

// In one layer, where sequences of `tokens` have `rows` new ones each: of a sequence.
double AttentionTimer::Seconds(int64_t rows, int64_t tokens) {
  Sequences sequences(*storage_);
  const int64_t each = kv::BlocksFor(tokens, storage_->layout().block_tokens);
  const int64_t count = rows == 1 ? kSequences : 1;
  for (int64_t i = 0; i < count; ++i) sequences.Add(rows, tokens - rows, i * each);
  const int64_t all_rows = sequences.step().rows;
  const int64_t width = int64_t{config_.heads} * config_.head_dim;
  const std::vector<float> q = RandomRows(all_rows * width);
  std::vector<float> out(q.size());
  const kernels::AttentionShape shape = {
      .heads = config_.heads, .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim))};
  LayerTimer timer(storage_->layout().layers);
  const double seconds = Median([&] {
    forget_();
    return timer.Mean([&](int32_t layer) {
      ops_.Attention(kernels::ConstMatrix(q.data(), all_rows, width, width), sequences.all(), shape,
                     storage_->Layer(layer), {out.data(), all_rows, width, width});
    });
  });
  return std::max(kLeast, seconds - call_) / static_cast<double>(count);
}

KernelRates::Attention AttentionTimer::Measure(int64_t rows) {
  const int64_t context = config_.context_length;
  rows = std::min(rows, context);
  const auto time = [&](int64_t tokens) {
    tokens = std::min(std::max(tokens, rows), context);
    StepRows step;
    step.Add(rows, tokens - rows, false);
    return std::pair(static_cast<double>(step.pairs), Seconds(rows, tokens));
  };
  const auto [few, short_seconds] = time(kFewTokens);
  const auto [many, long_seconds] = time(kManyTokens);
  KernelRates::Attention attention;
  if (many > few) attention.key = std::max(0.0, (long_seconds - short_seconds) / (many - few));
  attention.row = std::max(0.0, (short_seconds - attention.key * few) / static_cast<double>(rows));
  return attention;
}

// Of single rows, were K and V int8.
KernelRates::Attention MeasureInt8Kv(ModelRunner& runner, double call) {
  kernels::CpuOptions options = runner.options().cpu;
  options.kv_type = kernels::KvType::kInt8;
  const auto ops = kernels::MakeCpuOps(options);
  SETU_CHECK(ops.ok(), "there are kernels like those that the model was loaded with");
  kv::KvLayout layout = runner.fingerprint().layout;
  layout.type = kernels::KvType::kInt8;
  return AttentionTimer(runner, **ops, layout, call).Measure(1);
}

void MeasureAttention(ModelRunner& runner, double call, KernelRates& rates) {
  const kv::KvLayout& layout = runner.fingerprint().layout;
  {
    AttentionTimer timer(runner, runner.ops(), layout, call);
    rates.single = timer.Measure(1);
    rates.chunk = timer.Measure(KernelRates::kChunkRows);
  }
  const bool int8 = layout.type == kernels::KvType::kInt8;
  rates.int8_kv = int8 ? rates.single : MeasureInt8Kv(runner, call);
}

}  // namespace

KernelRates MeasureKernels(ModelRunner& runner, int64_t l3_bytes) {
  KernelRates rates;
  const double call = TimeCall(runner.ops());
  rates.products = MeasureProducts(runner.ops(), MatricesOf(runner.weights()), l3_bytes, call);
  MeasureAttention(runner, call, rates);

  const model::ModelConfig& config = runner.config();
  const kv::KvLayout& layout = runner.fingerprint().layout;
  const ModelShape shape = ShapeOf(config, runner.weights(), layout);
  const auto layer_growth = [&](size_t i) {
    return rates.LayerProducts(shape, kTimedRows[i]) /
           rates.LayerProducts(shape, kTimedRows[i - 1]);
  };
  const auto logit_growth = [&](size_t i) {
    return rates.LogitProducts(shape, kTimedRows[i]) /
           rates.LogitProducts(shape, kTimedRows[i - 1]);
  };
  const int64_t most = std::min<int64_t>(runner.options().max_rows, config.context_length);
  const auto storage = ScratchBlocks(layout, kv::BlocksFor(kTimedRows.back(), layout.block_tokens));
  LayerTimer timer(config.layers);
  rates.layer = TimeRows(most, layer_growth, [&](int64_t rows) {
    Step step(runner, *storage, rows);
    const double seconds = Median([&] { return step.Layer(timer); });
    return std::max(kLeast, seconds - rates.AttentionSeconds(step.rows()));
  });
  Forgetter forget(runner);
  rates.logits = TimeRows(std::min<int64_t>(most, runner.options().max_logits), logit_growth,
                          [&](int64_t rows) {
                            Step step(runner, *storage, rows);
                            return Median([&] {
                              forget();
                              return step.Logits();
                            });
                          });
  return rates;
}

}  // namespace setu::roofline
