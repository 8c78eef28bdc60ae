// SPDX-License-Identifier: Apache-2.0
#include "common/roofline/step_work.h"

#include <algorithm>

namespace setu::roofline {
namespace {

FormatValues& FormatOf(ModelShape& shape, kernels::WeightType type) {
  const auto same = std::ranges::find(shape.formats, type, &FormatValues::type);
  return same != shape.formats.end() ? *same : shape.formats.emplace_back(type);
}

int64_t Values(const kernels::PackedMatrix& matrix) { return matrix.rows() * matrix.cols(); }

}  // namespace

std::vector<const kernels::PackedMatrix*> MatricesOf(const model::Weights& weights) {
  std::vector<const kernels::PackedMatrix*> all;
  for (const model::LayerWeights& layer : weights.layers) {
    for (const model::Matrix* matrix :
         {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.w_gate, &layer.w_up, &layer.w_down}) {
      all.push_back(matrix->get());
    }
  }
  all.push_back(&weights.logits());
  return all;
}

ModelShape ShapeOf(const model::ModelConfig& config, const model::Weights& weights,
                   const kv::KvLayout& layout) {
  const auto norm_bytes = static_cast<int64_t>(weights.output_norm.size() * sizeof(float));
  const auto embedding_bytes = static_cast<int64_t>(weights.embedding->bytes());
  ModelShape shape = {
      .layers = config.layers,
      .attention_width = int64_t{config.heads} * config.head_dim,
      .logit_bytes = static_cast<int64_t>(weights.logits().bytes()) + norm_bytes,
      .row_bytes = embedding_bytes / config.vocabulary,
      .tied = weights.output == nullptr,
      .kv_values = int64_t{2} * config.layers * config.kv_heads * config.head_dim,
      .kv_token_bytes = static_cast<int64_t>(layout.block_bytes()) / layout.block_tokens};
  shape.layer_bytes = static_cast<int64_t>(weights.packed_bytes) - shape.logit_bytes -
                      (shape.tied ? 0 : embedding_bytes);
  const kernels::PackedMatrix& output = weights.logits();
  for (const kernels::PackedMatrix* matrix : MatricesOf(weights)) {
    if (matrix != &output) FormatOf(shape, matrix->type()).layers += Values(*matrix);
  }
  FormatOf(shape, output.type()).logits += Values(output);
  return shape;
}

void StepRows::Add(int64_t count, int64_t start, bool wants_logits) {
  ++sequences;
  rows += count;
  logits += wants_logits ? 1 : 0;
  positions += start + count;
  pairs += count * start + count * (count + 1) / 2;
}

StepRows DecodeRows(int64_t batch, int64_t context) {
  return {.sequences = batch,
          .rows = batch,
          .logits = batch,
          .positions = batch * (context + 1),
          .pairs = batch * (context + 1)};
}

StepWork& StepWork::operator+=(const StepWork& other) {
  weight_bytes += other.weight_bytes;
  kv_read_bytes += other.kv_read_bytes;
  kv_write_bytes += other.kv_write_bytes;
  product_operations += other.product_operations;
  attention_operations += other.attention_operations;
  return *this;
}

StepWork WorkOf(const ModelShape& shape, const StepRows& rows) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const bool logits = rows.logits > 0;
  // Rows of a tied embedding are part of the output matrix, where that is read at all.
  const int64_t embedding_bytes = logits && shape.tied ? 0 : rows.rows * shape.row_bytes;
  StepWork work = {.weight_bytes = number(shape.layer_bytes + (logits ? shape.logit_bytes : 0) +
                                          embedding_bytes),
                   .kv_read_bytes = number(rows.positions * shape.kv_token_bytes),
                   .kv_write_bytes = number(rows.rows * shape.kv_token_bytes),
                   .attention_operations =
                       4 * number(rows.pairs) * number(shape.layers * shape.attention_width)};
  for (const FormatValues& format : shape.formats) {
    work.product_operations += 2 * (number(rows.rows) * number(format.layers) +
                                    number(rows.logits) * number(format.logits));
  }
  return work;
}

}  // namespace setu::roofline
