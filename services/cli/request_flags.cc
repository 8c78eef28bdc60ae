// SPDX-License-Identifier: Apache-2.0
#include "services/cli/request_flags.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace setu::cli {

void AddRequestFlags(config::Options& options, RequestFlags* flags) {
  flags->router.AddTo(options);
  options.Add("deadline", &flags->deadline, "give up after this long").Range(0.001, 86400);
  options.Add("max-tokens", &flags->max_tokens, "at most so many tokens; absent: all that fit")
      .Range(1, 1 << 20);
  options.Add("min-tokens", &flags->min_tokens, "no end before so many").Range(0, 1 << 20);
  options.Add("temperature", &flags->temperature, "0 is greedy").Range(0, 100);
  options.Add("top-k", &flags->top_k, "keep the k likeliest ids; 0: all").Range(0, 1 << 30);
  options.Add("top-p", &flags->top_p, "keep the likeliest ids up to this sum").Range(0, 1);
  options.Add("min-p", &flags->min_p, "drop ids below this share of the likeliest").Range(0, 1);
  options.Add("seed", &flags->seed, "the same seed gives the same tokens; absent: drawn")
      .Range(0, std::numeric_limits<double>::infinity());
  options.Add("repetition-penalty", &flags->repetition_penalty, "1 is none").Range(0.01, 100);
  options.Add("frequency-penalty", &flags->frequency_penalty, "per occurrence").Range(-2, 2);
  options.Add("presence-penalty", &flags->presence_penalty, "once per id").Range(-2, 2);
  options.AddRepeated("stop", &flags->stop, "text that ends the answer; repeat it for several");
  options.Add("ignore-eos", &flags->ignore_eos, "go on past the model's end ids");
}

v1::GenerateRequest RequestFrom(const RequestFlags& flags) {
  v1::GenerateRequest request;
  v1::Sampling& s = *request.mutable_sampling();
  if (flags.max_tokens) s.set_max_tokens(static_cast<uint32_t>(*flags.max_tokens));
  if (flags.min_tokens) s.set_min_tokens(static_cast<uint32_t>(*flags.min_tokens));
  if (flags.temperature) s.set_temperature(static_cast<float>(*flags.temperature));
  if (flags.top_k) s.set_top_k(static_cast<uint32_t>(*flags.top_k));
  if (flags.top_p) s.set_top_p(static_cast<float>(*flags.top_p));
  if (flags.min_p) s.set_min_p(static_cast<float>(*flags.min_p));
  if (flags.seed) s.set_seed(static_cast<uint64_t>(*flags.seed));
  if (flags.repetition_penalty) {
    s.set_repetition_penalty(static_cast<float>(*flags.repetition_penalty));
  }
  if (flags.frequency_penalty) {
    s.set_frequency_penalty(static_cast<float>(*flags.frequency_penalty));
  }
  if (flags.presence_penalty) s.set_presence_penalty(static_cast<float>(*flags.presence_penalty));
  for (const std::string& stop : flags.stop) request.mutable_stopping()->add_strings(stop);
  if (flags.ignore_eos) request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

std::string InFlags(absl::string_view message) {
  const std::vector<absl::string_view> parts = absl::StrSplit(message, "sampling.");
  std::string text(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    const absl::string_view field = parts[i].substr(0, parts[i].find(' '));
    absl::StrAppend(&text, "--", absl::StrReplaceAll(field, {{"_", "-"}}),
                    parts[i].substr(field.size()));
  }
  return absl::StrReplaceAll(text, {{"stopping.strings", "--stop"}});
}

}  // namespace setu::cli
