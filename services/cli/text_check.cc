// SPDX-License-Identifier: Apache-2.0
#include "services/cli/text_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"

namespace setu::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status CheckString(const std::string& text, const std::string& name) {
  const size_t valid = ValidUtf8Prefix(text);
  if (valid == text.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is not valid UTF-8 at byte %d (0x%02X); convert it first, for instance with iconv", name,
      valid, static_cast<uint8_t>(text[valid])));
}

// `path` is "" or ends in a dot.
absl::Status CheckFields(const Message& message, const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool many = field->is_repeated();
    const int count = many ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string name =
          absl::StrCat(path, field->name(), many ? absl::StrCat("[", i, "]") : "");
      if (field->type() == FieldDescriptor::TYPE_STRING) {
        SETU_RETURN_IF_ERROR(CheckString(many ? reflection.GetRepeatedString(message, field, i)
                                              : reflection.GetString(message, field),
                                         name));
      } else if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
        SETU_RETURN_IF_ERROR(CheckFields(many ? reflection.GetRepeatedMessage(message, field, i)
                                              : reflection.GetMessage(message, field),
                                         absl::StrCat(name, ".")));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckText(const Message& message) { return CheckFields(message, ""); }

}  // namespace setu::cli
