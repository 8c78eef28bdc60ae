// SPDX-License-Identifier: Apache-2.0
// The angles by which heads are turned, for every position a model may have.
//   plain    Su et al., "RoFormer", arXiv:2104.09864: angle = position * base^(-2i / rotary_dim)
//   linear   positions divided by the factor (Chen et al., arXiv:2306.15595)
//   llama3   long wavelengths divided by the factor, short ones kept, a ramp between
//   yarn     the same by rotations over the original context, and cos and sin scaled
//            (Peng et al., arXiv:2309.00071)
#ifndef SETU_COMMON_MODEL_ROPE_H_
#define SETU_COMMON_MODEL_ROPE_H_

#include <vector>

#include "common/model/model_config.h"
#include "kernels/ops.h"

namespace setu::model {

// Made once, in double by kernels/math.h, so that every machine turns by the same bits.
class RopeAngles {
 public:
  explicit RopeAngles(const ModelConfig& config);
  kernels::RopeTable table() const;

 private:
  int64_t positions_, rotary_dim_;
  std::vector<float> cos_, sin_;  // [context_length, rotary_dim / 2]
};

// Radians per position of each pair of values: [rotary_dim / 2].
std::vector<double> RopeFrequencies(const ModelConfig& config);

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_ROPE_H_
