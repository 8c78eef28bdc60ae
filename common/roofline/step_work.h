// SPDX-License-Identifier: Apache-2.0
// What a step must move and compute at least, exactly: each byte and operation counted once,
// whatever the kernels do beside it. Pure functions; nothing on the way of a step allocates.
//
//   const ModelShape shape = ShapeOf(config, weights, layout);
//   StepRows rows;
//   for (const StepEntry& entry : entries) rows.Add(entry.ids.size(), entry.start, entry.logits);
//   const StepWork work = WorkOf(shape, rows);
//   work.bytes(), work.operations()             // over the step's seconds: bytes/s, FLOP/s
//
// Formulas: a product of [rows, K] with [N, K] is 2 rows N K operations; attention is 4 head_dim
// operations per query head, query and visible key (Williams et al., "Roofline", CACM 52(4), 2009,
// for how both make one figure).
#ifndef SETU_COMMON_ROOFLINE_STEP_WORK_H_
#define SETU_COMMON_ROOFLINE_STEP_WORK_H_

#include <cstdint>
#include <vector>

#include "common/kv/kv_storage.h"
#include "common/model/model_config.h"
#include "common/model/weights.h"

namespace setu::roofline {

// Weights of one type: how many a row meets.
struct FormatValues {
  kernels::WeightType type = kernels::WeightType::kF32;
  int64_t layers = 0;  // in all layers: the sum of N K
  int64_t logits = 0;  // and where its logits are wanted
};

// A model as the counting sees it. Bytes are those of the packed weights in memory.
struct ModelShape {
  int64_t layers = 0;
  int64_t attention_width = 0;        // heads * head_dim
  std::vector<FormatValues> formats;  // each type once
  int64_t layer_bytes = 0;            // of all layers' weights, norms and biases
  int64_t logit_bytes = 0;            // of the output matrix and its norm
  int64_t row_bytes = 0;              // of one row of the embedding
  bool tied = false;                  // the embedding is the output matrix
  int64_t kv_values = 0;              // of K and V of one position in all layers
  int64_t kv_token_bytes = 0;         // these with what scales them
};

ModelShape ShapeOf(const model::ModelConfig& config, const model::Weights& weights,
                   const kv::KvLayout& layout);

// The matrices that a step with logits multiplies by, in its order.
std::vector<const kernels::PackedMatrix*> MatricesOf(const model::Weights& weights);

// What the entries of a step add up to.
struct StepRows {
  int64_t sequences = 0;  // entries
  int64_t rows = 0;       // new tokens
  int64_t logits = 0;     // rows whose logits are wanted
  int64_t positions = 0;  // that some row sees: the past and the new tokens
  int64_t pairs = 0;      // of a row and a position that it sees

  // `count` consecutive tokens of one sequence, the first of them at position `start`.
  void Add(int64_t count, int64_t start, bool wants_logits);
  bool operator==(const StepRows&) const = default;
};

// A token for each of `batch` sequences that hold `context` tokens before it.
StepRows DecodeRows(int64_t batch, int64_t context);

// Doubles: they are added up for as long as a process lives, and exact up to 2^53.
struct StepWork {
  double weight_bytes = 0;    // read once, whatever the rows; embedding rows only where untied
  double kv_read_bytes = 0;   // each visible position once: query heads of a group share a read
  double kv_write_bytes = 0;  // the new tokens'
  double product_operations = 0;
  double attention_operations = 0;

  double bytes() const { return weight_bytes + kv_read_bytes + kv_write_bytes; }
  double operations() const { return product_operations + attention_operations; }
  StepWork& operator+=(const StepWork& other);
  bool operator==(const StepWork&) const = default;
};

StepWork WorkOf(const ModelShape& shape, const StepRows& rows);

}  // namespace setu::roofline

#endif  // SETU_COMMON_ROOFLINE_STEP_WORK_H_
