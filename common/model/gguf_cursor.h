// SPDX-License-Identifier: Apache-2.0
// Walks through the bytes of a GGUF image and takes one value after another. Every length and
// count is checked against the bytes that are left before anything is copied.
//
//   GgufCursor cursor(bytes);
//   SETU_ASSIGN_OR_RETURN(uint32_t version, cursor.Next<uint32_t>("version"));
//
// `field` names in an error what was being read.
#ifndef SETU_COMMON_MODEL_GGUF_CURSOR_H_
#define SETU_COMMON_MODEL_GGUF_CURSOR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/gguf.h"

namespace setu::model {

static_assert(std::endian::native == std::endian::little, "values are read as they stand");

// INVALID_ARGUMENT "field: problem".
absl::Status InvalidField(std::string_view field, const std::string& problem);

// A name out of a file, safe to show: quoted, escaped, cut where it is long.
std::string Quoted(std::string_view name);

class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> file) : file_(file) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return file_.size() - position_; }

  template <typename T>
  absl::StatusOr<T> Next(std::string_view field) {
    if (remaining() < sizeof(T)) return CutShort(field);
    T value;
    std::memcpy(&value, file_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }
  // A length of 64 bits, at most `limit`, then as many bytes.
  absl::StatusOr<std::string> NextString(std::string_view field, uint64_t limit);
  // A value of metadata: its type's number, then what the type says.
  absl::StatusOr<GgufFile::Value> NextValue(const std::string& field);
  // OK where `count` things of at least `bytes_each` fit into what is left, and are not over
  // `limit`.
  absl::Status CheckCount(std::string_view field, uint64_t count, uint64_t bytes_each,
                          uint64_t limit) const;

 private:
  absl::Status CutShort(std::string_view field) const;
  template <typename Stored, typename Kept>
  absl::StatusOr<GgufFile::Value> NextAs(std::string_view field);
  absl::StatusOr<GgufFile::Value> NextBool(std::string_view field);
  absl::StatusOr<GgufFile::Value> NextScalar(const std::string& field, uint32_t type);
  absl::StatusOr<GgufFile::Value> NextArray(const std::string& field);
  template <typename Element>
  absl::StatusOr<GgufFile::Value> NextElements(const std::string& field, uint32_t type,
                                               uint64_t count);

  std::span<const std::byte> file_;
  uint64_t position_ = 0;
};

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_GGUF_CURSOR_H_
