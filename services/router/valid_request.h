// SPDX-License-Identifier: Apache-2.0
// A request that was parsed once, at the edge: only the Validator makes one, so whoever holds it
// need not check again.
#ifndef SETU_SERVICES_ROUTER_VALID_REQUEST_H_
#define SETU_SERVICES_ROUTER_VALID_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/engine/sampling_params.h"

namespace setu::router {

class ValidRequest {
 public:
  ValidRequest(ValidRequest&&) = default;
  ValidRequest& operator=(ValidRequest&&) = default;

  const std::string& label() const { return label_; }  // the client's request_id, may be empty
  const std::vector<engine::TokenId>& prompt_ids() const { return prompt_ids_; }  // never empty
  // Defaults filled in; seed fixed; end_ids complete; max_tokens fits context and pool.
  const engine::SamplingParams& sampling() const { return sampling_; }
  const std::vector<std::string>& stop_strings() const { return stop_strings_; }
  int32_t choices() const { return choices_; }  // n, 1 to 16
  bool echo() const { return echo_; }
  const std::string& prompt_text() const { return prompt_text_; }  // for echo

 private:
  friend class Validator;
  ValidRequest() = default;
  std::string label_;
  std::vector<engine::TokenId> prompt_ids_;
  engine::SamplingParams sampling_;
  std::vector<std::string> stop_strings_;
  int32_t choices_ = 1;
  bool echo_ = false;
  std::string prompt_text_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_VALID_REQUEST_H_
