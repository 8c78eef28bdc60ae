// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/small_file.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/config/sources.h"

namespace setu::config {
namespace {

constexpr size_t kMaxFileBytes = 64 << 10;

// Where text ends that may stand in a YAML file: yaml-cpp would take a NUL for the end.
size_t TextPrefix(const std::string& bytes) {
  const size_t valid = ValidUtf8Prefix(bytes);
  for (size_t i = 0; i < valid; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const bool blank = byte == '\t' || byte == '\n' || byte == '\r';
    if ((byte < 0x20 && !blank) || byte == 0x7F) return i;
  }
  return valid;
}

// Takes the parser's events one by one, so that nothing is expanded and nothing is passed over.
class MapReader final : public YAML::EventHandler {
 public:
  explicit MapReader(const std::string& path) : path_(path) {}

  bool ok() const { return status_.ok(); }
  absl::StatusOr<std::vector<Assignment>> Result() && {
    if (!status_.ok()) return status_;
    return std::move(assignments_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) Refuse(mark, "a second document begins; a file has one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // An empty document is an empty map.
    if (anchor == 0 && next_ == Next::kDocument) return;
    if (Plain(mark, "", anchor)) RefuseKind(mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(mark, "aliases (*name) are not allowed; write the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!Plain(mark, tag, anchor)) return;
    switch (next_) {
      case Next::kDocument:
        return RefuseKind(mark);
      case Next::kName:
        return TakeName(mark, value);
      case Next::kValue:
        return TakeValues({value});
      case Next::kItem:
        items_.push_back(value);
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (!Plain(mark, tag, anchor)) return;
    if (next_ != Next::kValue) return RefuseKind(mark);
    next_ = Next::kItem;
    items_.clear();
  }
  void OnSequenceEnd() override {
    if (status_.ok()) TakeValues(std::move(items_));
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (!Plain(mark, tag, anchor)) return;
    if (next_ != Next::kDocument) return RefuseKind(mark);
    next_ = Next::kName;
  }
  void OnMapEnd() override {}

 private:
  enum class Next { kDocument, kName, kValue, kItem };

  std::string Place(const YAML::Mark& mark) const {
    return absl::StrCat(path_, ":", mark.line + 1, ": ");
  }
  // Only the first fault counts; what comes after it is not looked at.
  void Refuse(const YAML::Mark& mark, absl::string_view why) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(Place(mark), why));
  }
  void RefuseKind(const YAML::Mark& mark) {
    switch (next_) {
      case Next::kDocument:
        return Refuse(mark, "the file must be a map from names to values");
      case Next::kName:
        return Refuse(mark, "a key must be a name");
      case Next::kValue:
      case Next::kItem:
        // Where the name stands: a value that is missing stands nowhere.
        return Refuse(name_mark_, absl::StrCat(name_, " must be a value or a list of values"));
    }
  }
  bool Plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) Refuse(mark, "anchors (&name) are not allowed; write each value itself");
    // The parser's own for what has none: "?", and "!" in quotes.
    if (tag.size() > 1) Refuse(mark, absl::StrCat("tags (", tag, ") are not allowed"));
    return status_.ok();
  }
  void TakeName(const YAML::Mark& mark, const std::string& name) {
    name_ = name;
    name_mark_ = mark;
    next_ = Next::kValue;
    if (!seen_.insert(name).second) Refuse(mark, absl::StrCat(name, " is given twice"));
  }
  void TakeValues(std::vector<std::string> values) {
    assignments_.push_back({name_, std::move(values), absl::StrCat(Place(name_mark_), name_)});
    next_ = Next::kName;
  }

  const std::string& path_;
  absl::Status status_;
  int documents_ = 0;
  Next next_ = Next::kDocument;
  std::set<std::string> seen_;
  std::string name_;
  YAML::Mark name_mark_;
  std::vector<std::string> items_;
  std::vector<Assignment> assignments_;
};

}  // namespace

absl::StatusOr<std::vector<Assignment>> ReadYamlFile(const std::string& path) {
  SETU_ASSIGN_OR_RETURN(const std::string text,
                        ReadSmallFile("--config file", path, kMaxFileBytes));
  return ParseYaml(path, text);
}

absl::StatusOr<std::vector<Assignment>> ParseYaml(const std::string& path,
                                                  const std::string& text) {
  if (const size_t prefix = TextPrefix(text); prefix != text.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": byte ", prefix, " is no UTF-8 text; it must be a YAML file"));
  }
  MapReader reader(path);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    // Before what begins no value, a comma for one, the parser finds empty documents without end.
    while (reader.ok() && parser.HandleNextDocument(reader)) continue;
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", error.mark.line + 1, ": ", error.msg));
  }
  return std::move(reader).Result();
}

}  // namespace setu::config
