// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/config/sources.h"

namespace setu::config {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::InvalidArgumentError(absl::StrCat("cannot open --config file ", path));
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() <= kMaxFileBytes) return text;
  return absl::InvalidArgumentError(absl::StrCat("--config file ", path, " has over ",
                                                 kMaxFileBytes, " bytes, the most allowed"));
}

absl::StatusOr<std::string> ValueText(const YAML::Node& node, const std::string& where) {
  if (node.IsScalar()) return node.Scalar();
  std::vector<std::string> parts;
  bool plain = node.IsSequence();
  for (size_t i = 0; plain && i < node.size(); ++i) {
    plain = node[i].IsScalar();
    if (plain) parts.push_back(node[i].Scalar());
  }
  if (plain) return absl::StrJoin(parts, ",");
  return absl::InvalidArgumentError(absl::StrCat(where, " must be a value or a list of values"));
}

absl::StatusOr<std::vector<Assignment>> ReadMap(const std::string& text, const std::string& path) {
  const YAML::Node root = YAML::Load(text);
  std::vector<Assignment> assignments;
  if (root.IsNull()) return assignments;
  if (!root.IsMap()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " must be a map from options to values"));
  }
  std::set<std::string> seen;
  for (const auto& pair : root) {
    const std::string line = absl::StrCat(path, ":", pair.first.Mark().line + 1, ": ");
    if (!pair.first.IsScalar()) {
      return absl::InvalidArgumentError(absl::StrCat(line, "a key must be an option's name"));
    }
    const std::string name = pair.first.Scalar();
    const std::string where = absl::StrCat(line, name);
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(where, " is given twice"));
    }
    SETU_ASSIGN_OR_RETURN(std::string value, ValueText(pair.second, where));
    assignments.push_back({name, std::move(value), where});
  }
  return assignments;
}

}  // namespace

absl::StatusOr<std::vector<Assignment>> ReadYamlFile(const std::string& path) {
  SETU_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path));
  try {
    return ReadMap(text, path);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", error.mark.line + 1, ": ", error.msg));
  }
}

}  // namespace setu::config
