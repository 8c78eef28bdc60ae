// SPDX-License-Identifier: Apache-2.0
// How long prompts and answers of a load are, in tokens. Pure.
//
//   64                      always
//   16..512                 each of them as likely as the others
//   16,64,256               one of these, each as likely
//   lognormal:200:0.8:2000  median 200, sigma 0.8, cut at 2000
//
//   SETU_ASSIGN_OR_RETURN(Lengths lengths, Lengths::Parse("--max-tokens", "16..512"));
//   lengths.Draw(draws)
#ifndef SETU_SERVICES_CLI_LOAD_LENGTHS_H_
#define SETU_SERVICES_CLI_LOAD_LENGTHS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/cli/load/draws.h"

namespace setu::cli {

class Lengths {
 public:
  static constexpr int32_t kMost = 1 << 20;

  // INVALID_ARGUMENT names `flag`, the text and the four forms.
  static absl::StatusOr<Lengths> Parse(absl::string_view flag, absl::string_view text);

  int32_t Draw(Draws& draws) const;

 private:
  struct Uniform {
    int32_t low, high;  // both of them too
  };
  struct Lognormal {
    double median, sigma;
    int32_t most;
  };
  using Form = std::variant<Uniform, std::vector<int32_t>, Lognormal>;
  explicit Lengths(Form form) : form_(std::move(form)) {}

  Form form_;
};

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOAD_LENGTHS_H_
