// SPDX-License-Identifier: Apache-2.0
#include "common/model/transformer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/base/check.h"

namespace setu::model {

using kernels::ConstMatrix;
using kernels::LinearOutput;
using kernels::Normed;
using Activations = kernels::Matrix;

namespace {

// The first `rows` rows of a buffer.
Activations Rows(kernels::LineBuffer<float>& buffer, size_t rows, int64_t cols) {
  return {buffer.data(), static_cast<int64_t>(rows), cols, cols};
}

const float* OrNull(const Vector& vector) { return vector.empty() ? nullptr : vector.data(); }

}  // namespace

Transformer::Transformer(const ModelConfig& config, const Weights& weights, kernels::Ops& ops,
                         int32_t max_rows, int32_t max_logits)
    : config_(config),
      weights_(weights),
      ops_(ops),
      max_rows_(max_rows),
      max_logits_(max_logits),
      rope_(config),
      x_(size_t{1} * max_rows * config.hidden),
      q_(size_t{1} * max_rows * config.heads * config.head_dim),
      attended_(q_.size()),
      k_(size_t{1} * max_rows * config.kv_heads * config.head_dim),
      v_(k_.size()),
      last_(size_t{1} * max_logits * config.hidden),
      logits_(size_t{1} * max_logits * config.vocabulary) {}

ConstMatrix Transformer::Forward(const ForwardBatch& batch, kv::KvStorage& storage,
                                 const LayerDone& layer_done) {
  Embed(batch);
  for (int32_t layer = 0; layer < config_.layers; ++layer) {
    Layer(layer, batch, storage, layer_done);
  }
  return Logits(batch);
}

void Transformer::Embed(const ForwardBatch& batch) {
  SETU_CHECK(std::cmp_less_equal(batch.ids.size(), max_rows_), "a batch fits the buffers");
  ops_.Embed(*weights_.embedding, batch.ids, Rows(x_, batch.ids.size(), config_.hidden));
}

void Transformer::Layer(int32_t layer, const ForwardBatch& batch, kv::KvStorage& storage,
                        const LayerDone& layer_done) {
  const LayerWeights& w = weights_.layers[layer];
  const int64_t head_dim = config_.head_dim;
  const size_t rows = batch.ids.size();
  const Activations x = Rows(x_, rows, config_.hidden);
  const Activations q = Rows(q_, rows, config_.heads * head_dim);
  const Activations k = Rows(k_, rows, config_.kv_heads * head_dim);
  const Activations v = Rows(v_, rows, config_.kv_heads * head_dim);
  const Activations attended = Rows(attended_, rows, q.cols);
  const kernels::KvLayer kv = storage.Layer(layer);

  ops_.Linear(Normed{x, w.attention_norm.data(), config_.norm_eps},
              std::to_array<LinearOutput>({{w.wq.get(), OrNull(w.bq), q},
                                           {w.wk.get(), OrNull(w.bk), k},
                                           {w.wv.get(), OrNull(w.bv), v}}));
  ops_.RopeAndStoreKv(q, k, v, batch.sequences,
                      {OrNull(w.q_norm), OrNull(w.k_norm), config_.norm_eps}, rope_.table(),
                      config_.rope_kind, kv);
  if (layer_done) layer_done(layer);
  const kernels::AttentionShape shape = {.heads = config_.heads,
                                         .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
  ops_.Attention(q, batch.sequences, shape, kv, attended);
  ops_.Linear(ConstMatrix(attended), std::to_array<LinearOutput>({{w.wo.get(), nullptr, x, true}}));

  ops_.FeedForward(Normed{x, w.ffn_norm.data(), config_.norm_eps}, *w.w_gate, *w.w_up,
                   {w.w_down.get(), nullptr, x, true});
}

ConstMatrix Transformer::Logits(const ForwardBatch& batch) {
  SETU_CHECK(std::cmp_less_equal(batch.logit_rows.size(), max_logits_), "logits fit the buffer");
  const Activations x = Rows(x_, batch.ids.size(), config_.hidden);
  const Activations last = Rows(last_, batch.logit_rows.size(), config_.hidden);
  for (int64_t i = 0; i < last.rows; ++i) {
    std::copy_n(x.Row(batch.logit_rows[i]), x.cols, last.Row(i));
  }
  const Activations logits = Rows(logits_, batch.logit_rows.size(), config_.vocabulary);
  if (logits.rows == 0) return logits;
  ops_.Linear(Normed{last, weights_.output_norm.data(), config_.norm_eps},
              std::to_array<LinearOutput>({{.weights = &weights_.logits(), .out = logits}}));
  return logits;
}

}  // namespace setu::model
