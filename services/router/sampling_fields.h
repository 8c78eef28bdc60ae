// SPDX-License-Identifier: Apache-2.0
// The part of a request that says how tokens are drawn and what ends them, with defaults filled in
// and every bound of inference.proto checked.
#ifndef SETU_SERVICES_ROUTER_SAMPLING_FIELDS_H_
#define SETU_SERVICES_ROUTER_SAMPLING_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/engine/sampling_params.h"
#include "common/tokenizer/tokenizer.h"
#include "setu/v1/inference.pb.h"

namespace setu::router {

inline constexpr float kMaxTemperature = 100.0f;

// All but max_tokens, which depends on the prompt, and seed, which may have to be drawn.
absl::StatusOr<engine::SamplingParams> ReadSampling(const v1::GenerateRequest& request,
                                                    const tokenizer::Tokenizer& tokenizer,
                                                    float default_temperature);

absl::StatusOr<std::vector<std::string>> ReadStopStrings(const v1::Stopping& stopping);

// n, 1 to 16.
absl::StatusOr<int32_t> ReadChoices(const v1::Sampling& sampling);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_SAMPLING_FIELDS_H_
