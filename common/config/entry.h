// SPDX-License-Identifier: Apache-2.0
// One declared option with its rules, and one value for it as found somewhere.
#ifndef SETU_COMMON_CONFIG_ENTRY_H_
#define SETU_COMMON_CONFIG_ENTRY_H_

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/config/options.h"
#include "common/config/value.h"

namespace setu::config {

// The environment's way to write an option's name: SETU_CHUNK_TOKENS for chunk-tokens.
std::string VariableOf(std::string_view name);

class Entry final : public Option {
 public:
  Entry(std::string name, Value value, std::string help);

  Option& Required() override;
  Option& Range(double lowest, double highest) override;
  Option& OneOf(std::vector<std::string> values) override;

  // INVALID_ARGUMENT: "`where` is `text`; it must be ...".
  absl::Status Set(const std::string& text, const std::string& where);

  const std::string& name() const { return name_; }
  const std::string& placeholder() const { return value_.placeholder; }
  bool is_switch() const { return value_.placeholder.empty(); }
  bool repeats() const { return value_.clear != nullptr; }
  void Clear() { value_.clear(); }  // only what repeats
  bool missing() const { return required_ && !set_; }
  std::string Variable() const { return VariableOf(name_); }
  std::string Description() const;  // help, what is allowed, default

 private:
  std::string RangeText() const;

  const std::string name_;
  const Value value_;
  const std::string help_;
  const std::string default_;
  bool required_ = false;
  bool set_ = false;
  double lowest_ = -std::numeric_limits<double>::infinity();
  double highest_ = std::numeric_limits<double>::infinity();
  std::vector<std::string> one_of_;
};

}  // namespace setu::config

#endif  // SETU_COMMON_CONFIG_ENTRY_H_
