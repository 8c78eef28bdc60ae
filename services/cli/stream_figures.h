// SPDX-License-Identifier: Apache-2.0
// How fast an answer came, as its client saw it. Pure.
//
//   StreamFigures figures(clock.Now());                       // just before the request is sent
//   ... figures.On(response, clock.Now()); ...                // each response
//   std::fprintf(stderr, "%s\n", figures.Line().c_str());
#ifndef SETU_SERVICES_CLI_STREAM_FIGURES_H_
#define SETU_SERVICES_CLI_STREAM_FIGURES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "setu/v1/inference.pb.h"

namespace setu::cli {

class StreamFigures {
 public:
  explicit StreamFigures(TimePoint sent) : sent_(sent) {}
  void On(const v1::GenerateResponse& response, TimePoint now);

  // "TTFT 12.0 ms, 143.2 tokens/s, ..." of all choices together. The rate is that of the tokens
  // behind the first delta over the time they took; absent where there are none.
  std::string Line() const;

 private:
  struct Tokens {
    int64_t count = 0;  // of the first delta, or of those behind it
    TimePoint last{};
  };
  const TimePoint sent_;
  Tokens first_, later_;
  int64_t prompt_tokens_ = 0;
  int64_t generated_tokens_ = 0;
  v1::Timings timings_;
  std::string mixed_numerics_;  // "a + b"; empty: one path
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_STREAM_FIGURES_H_
