// SPDX-License-Identifier: Apache-2.0
// Passes over a row of scores, one per id of a vocabulary, sixteen at a time by the best ISA there
// is; the same bits by any. What a sampler needs beside ExpRow (math.h).
//
//   kernels::OrderScores(logits, count, scores);
//   float highest = kernels::HighestScore(scores, count);
#ifndef SETU_KERNELS_SCORES_H_
#define SETU_KERNELS_SCORES_H_

#include <cstdint>

namespace setu::kernels {

// out[i] = x[i], but -infinity for NaN, and the largest float for +infinity: an order, and
// differences that have a value.
void OrderScores(const float* x, int64_t count, float* out);
// Of scores without NaN; -infinity where there are none.
float HighestScore(const float* x, int64_t count);
// x[i] = (x[i] - origin) / divisor.
void ScaleScores(float* x, int64_t count, float origin, float divisor);
// Of all x[i] >= least, in sixteen partial sums in double, by i modulo 16, joined by halves (rule 7
// of the numeric paths).
double SumScores(const float* x, int64_t count, float least);
// Writes every i where x[i] >= least, ascending, and gives how many; `ids` has room for `count`.
int64_t SelectScores(const float* x, int64_t count, float least, int32_t* ids);

}  // namespace setu::kernels

#endif  // SETU_KERNELS_SCORES_H_
