// SPDX-License-Identifier: Apache-2.0
#include "services/cli/stream_figures.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace setu::cli {

void StreamFigures::On(const v1::GenerateResponse& response, TimePoint now) {
  if (response.has_delta() && response.delta().token_ids_size() > 0) {
    Tokens& tokens = first_.count == 0 ? first_ : later_;
    tokens.count += response.delta().token_ids_size();
    tokens.last = now;
  }
  if (response.has_finished()) {
    const v1::Usage& usage = response.finished().usage();
    prompt_tokens_ = usage.prompt_tokens();
    generated_tokens_ += usage.completion_tokens();
    timings_ = response.finished().timings();
    mixed_numerics_ = absl::StrJoin(response.finished().mixed_numerics(), " + ");
  }
}

std::string StreamFigures::Line() const {
  std::string line;
  if (first_.count > 0) {
    absl::StrAppendFormat(&line, "TTFT %.1f ms, ", Milliseconds(first_.last - sent_));
  }
  if (later_.count > 0 && later_.last > first_.last) {
    const std::chrono::duration<double> took = later_.last - first_.last;
    absl::StrAppendFormat(&line, "%.1f tokens/s, ",
                          static_cast<double>(later_.count) / took.count());
  }
  absl::StrAppendFormat(&line,
                        "%d prompt + %d generated tokens, KV moved %.1f KiB, transfer tail %.2f ms",
                        prompt_tokens_, generated_tokens_,
                        static_cast<double>(timings_.kv_bytes()) / 1024.0, timings_.transfer_ms());
  if (!mixed_numerics_.empty()) absl::StrAppend(&line, ", mixed numerics ", mixed_numerics_);
  return line;
}

}  // namespace setu::cli
