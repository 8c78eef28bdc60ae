// SPDX-License-Identifier: Apache-2.0
#include "common/config/entry.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/utf8.h"

namespace setu::config {
namespace {

// Paths and lists are told whole, a file pasted by mistake is not.
std::string Shortened(const std::string& text) {
  constexpr size_t kMost = 200;
  return text.size() <= kMost ? text : absl::StrCat(std::string(Utf8Start(text, kMost)), "...");
}

}  // namespace

Entry::Entry(std::string name, Value value, std::string help)
    : name_(std::move(name)),
      value_(std::move(value)),
      help_(std::move(help)),
      default_(value_.get()) {}

Option& Entry::Required() {
  required_ = true;
  return *this;
}

Option& Entry::Range(double lowest, double highest) {
  lowest_ = lowest;
  highest_ = highest;
  return *this;
}

Option& Entry::OneOf(std::vector<std::string> values) {
  one_of_ = std::move(values);
  return *this;
}

absl::Status Entry::Set(const std::string& text, const std::string& where) {
  auto refuse = [&](const std::string& rule) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " is '", Shortened(text), "'; it ", rule));
  };
  if (!one_of_.empty() && std::find(one_of_.begin(), one_of_.end(), text) == one_of_.end()) {
    return refuse(absl::StrCat("must be one of ", absl::StrJoin(one_of_, ", ")));
  }
  if (required_ && text.empty()) return refuse("must not be empty");
  const absl::StatusOr<double> number = value_.set(text);
  if (!number.ok()) return refuse(std::string(number.status().message()));
  if (*number < lowest_ || *number > highest_) {
    return refuse(absl::StrCat("must be ", RangeText()));
  }
  set_ = true;
  return absl::OkStatus();
}

std::string VariableOf(std::string_view name) {
  std::string variable = absl::StrCat("SETU_", absl::AsciiStrToUpper(std::string(name)));
  std::replace(variable.begin(), variable.end(), '-', '_');
  return variable;
}

std::string Entry::RangeText() const {
  if (std::isinf(highest_)) return absl::StrCat("at least ", value_.write(lowest_));
  if (std::isinf(lowest_)) return absl::StrCat("at most ", value_.write(highest_));
  return absl::StrCat(value_.write(lowest_), " to ", value_.write(highest_));
}

std::string Entry::Description() const {
  std::string text = help_;
  if (!one_of_.empty()) absl::StrAppend(&text, "; one of ", absl::StrJoin(one_of_, ", "));
  if (std::isfinite(lowest_) || std::isfinite(highest_)) {
    absl::StrAppend(&text, "; ", RangeText());
  }
  if (required_) {
    absl::StrAppend(&text, " (required)");
  } else if (!default_.empty() && !(is_switch() && default_ == "false")) {
    absl::StrAppend(&text, " (default ", default_, ")");
  }
  return text;
}

}  // namespace setu::config
