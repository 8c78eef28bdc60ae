// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/gguf_cursor.h"

namespace setu::model {
namespace {

using kernels::WeightType;

constexpr size_t kMaxKeyBytes = 65535;  // the format's own limit
constexpr size_t kMaxNameBytes = 64;    // the format's own limit, for tensors
constexpr uint32_t kMaxDimensions = 4;  // the format's own limit
constexpr uint64_t kMaxTensors = 1 << 16;
constexpr uint64_t kMaxMetadata = 1 << 16;
constexpr uint64_t kMaxValues = uint64_t{1} << 48;  // of a tensor: byte sums below cannot overflow
constexpr uint64_t kMinMetadataBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint32_t kDefaultAlignment = 32;

std::optional<WeightType> SupportedType(uint32_t number) {
  for (WeightType type : kernels::kWeightTypes) {
    if (static_cast<uint32_t>(type) == number) return type;
  }
  return std::nullopt;
}

// Types of GGML that have no kernels here, so that the error can say what the file holds.
std::string TypeText(uint32_t number) {
  constexpr std::pair<uint32_t, const char*> kOthers[] = {
      {9, "Q8_1"},    {10, "Q2_K"},    {11, "Q3_K"},  {15, "Q8_K"},   {16, "IQ2_XXS"},
      {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},
      {22, "IQ2_S"},  {23, "IQ4_XS"},  {24, "I8"},    {25, "I16"},    {26, "I32"},
      {27, "I64"},    {28, "F64"},     {29, "IQ1_M"}, {34, "TQ1_0"},  {35, "TQ2_0"},
      {39, "MXFP4"}};
  for (const auto& [other, name] : kOthers) {
    if (other == number) return absl::StrCat(number, " (", name, ")");
  }
  return absl::StrCat(number);
}

absl::Status UnsupportedType(const std::string& field, uint32_t number) {
  std::string known;
  for (WeightType type : kernels::kWeightTypes) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", kernels::WeightTypeName(type));
  }
  return InvalidField(field, absl::StrCat("type ", TypeText(number), " is not one of ", known));
}

// What a file that is no GGUF seems to be.
std::string OtherFormat(std::string_view start) {
  if (start.starts_with("PK\x03\x04")) return "a PyTorch or zip archive";
  if (start.starts_with("\x80")) return "a Python pickle, which could run code";
  if (start.size() > 8 && start[8] == '{') return "a safetensors file";
  if (start.starts_with("lmgg") || start.starts_with("tjgg")) {
    return "a GGML file of before GGUF";
  }
  return "another format";
}

class Parser {
 public:
  explicit Parser(std::span<const std::byte> file) : file_(file), cursor_(file) {}

  absl::StatusOr<GgufContents> Parse() {
    SETU_RETURN_IF_ERROR(ReadHeader());
    for (uint64_t i = 0; i < metadata_count_; ++i) SETU_RETURN_IF_ERROR(ReadMetadata(i));
    SETU_ASSIGN_OR_RETURN(alignment_, Alignment());
    offsets_.reserve(tensor_count_);
    contents_.tensors.reserve(tensor_count_);
    for (uint64_t i = 0; i < tensor_count_; ++i) SETU_RETURN_IF_ERROR(ReadTensor(i));
    SETU_RETURN_IF_ERROR(PlaceTensors());
    SETU_RETURN_IF_ERROR(CheckOverlaps());
    return std::move(contents_);
  }

 private:
  absl::Status ReadHeader() {
    const std::string_view start(reinterpret_cast<const char*>(file_.data()),
                                 std::min<size_t>(file_.size(), 9));
    if (!start.starts_with("GGUF")) {
      return InvalidField(
          "magic", absl::StrCat("not 'GGUF'; this is ", OtherFormat(start), ", give a GGUF file"));
    }
    SETU_ASSIGN_OR_RETURN([[maybe_unused]] uint32_t magic, cursor_.Next<uint32_t>("magic"));
    SETU_ASSIGN_OR_RETURN(uint32_t version, cursor_.Next<uint32_t>("version"));
    if (version != 2 && version != 3) {
      const bool swapped = version != 0 && (version & 0xffff) == 0;
      return InvalidField("version", swapped ? "the file is big-endian; give a little-endian one"
                                             : absl::StrCat(version, " is not 2 or 3"));
    }
    SETU_ASSIGN_OR_RETURN(tensor_count_, cursor_.Next<uint64_t>("tensor_count"));
    SETU_ASSIGN_OR_RETURN(metadata_count_, cursor_.Next<uint64_t>("metadata_kv_count"));
    SETU_RETURN_IF_ERROR(
        cursor_.CheckCount("tensor_count", tensor_count_, kMinTensorBytes, kMaxTensors));
    return cursor_.CheckCount("metadata_kv_count", metadata_count_, kMinMetadataBytes,
                              kMaxMetadata);
  }

  absl::Status ReadMetadata(uint64_t index) {
    SETU_ASSIGN_OR_RETURN(std::string key,
                          cursor_.NextString(absl::StrCat("metadata key ", index), kMaxKeyBytes));
    const std::string field = absl::StrCat("metadata ", Quoted(key));
    SETU_ASSIGN_OR_RETURN(GgufFile::Value value, cursor_.NextValue(field));
    if (!contents_.metadata.emplace(std::move(key), std::move(value)).second) {
      return InvalidField(field, "the key appears twice");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> Alignment() const {
    const auto found = contents_.metadata.find("general.alignment");
    if (found == contents_.metadata.end()) return kDefaultAlignment;
    const uint64_t* value = std::get_if<uint64_t>(&found->second);
    constexpr uint64_t kMax = uint64_t{1} << 31;
    if (!value || *value < 8 || *value > kMax || !std::has_single_bit(*value)) {
      return InvalidField("metadata 'general.alignment'", "not a power of two from 8 to 2^31");
    }
    return static_cast<uint32_t>(*value);
  }

  absl::Status ReadTensor(uint64_t index) {
    GgufTensor tensor;
    SETU_ASSIGN_OR_RETURN(tensor.name,
                          cursor_.NextString(absl::StrCat("tensor name ", index), kMaxNameBytes));
    const std::string field = absl::StrCat("tensor ", Quoted(tensor.name));
    SETU_ASSIGN_OR_RETURN(uint32_t dimensions, cursor_.Next<uint32_t>(field));
    if (dimensions < 1 || dimensions > kMaxDimensions) {
      return InvalidField(field,
                          absl::StrCat(dimensions, " dimensions are not 1 to ", kMaxDimensions));
    }
    uint64_t values = 1;
    for (uint32_t d = 0; d < dimensions; ++d) {
      SETU_ASSIGN_OR_RETURN(uint64_t size, cursor_.Next<uint64_t>(field));
      if (size < 1 || size > kMaxValues / values) {
        return InvalidField(field,
                            absl::StrCat("dimension ", d, " is ", size,
                                         "; it must be at least 1 and the product at most 2^48"));
      }
      values *= size;
      tensor.shape.push_back(static_cast<int64_t>(size));
    }
    SETU_ASSIGN_OR_RETURN(uint32_t type, cursor_.Next<uint32_t>(field));
    const std::optional<WeightType> supported = SupportedType(type);
    if (!supported) return UnsupportedType(field, type);
    tensor.type = *supported;
    if (tensor.cols() % kernels::BlockValues(tensor.type) != 0) {
      return InvalidField(
          field, absl::StrCat("rows of ", tensor.cols(), " values are not whole blocks of ",
                              kernels::BlockValues(tensor.type), " that ",
                              kernels::WeightTypeName(tensor.type), " needs"));
    }
    tensor.bytes = kernels::RowBytes(tensor.type, tensor.cols()) * tensor.rows();
    SETU_ASSIGN_OR_RETURN(uint64_t offset, cursor_.Next<uint64_t>(field));
    if (!contents_.tensor_index.emplace(tensor.name, index).second) {
      return InvalidField(field, "the name appears twice");
    }
    offsets_.push_back(offset);
    contents_.tensors.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  // Offsets count from the first aligned byte after the tensor table.
  absl::Status PlaceTensors() {
    const uint64_t data = (cursor_.position() + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t data_bytes = file_.size() > data ? file_.size() - data : 0;
    for (size_t i = 0; i < offsets_.size(); ++i) {
      GgufTensor& tensor = contents_.tensors[i];
      const uint64_t offset = offsets_[i];
      const std::string field = absl::StrCat("tensor ", Quoted(tensor.name));
      if (offset % alignment_ != 0) {
        return InvalidField(field,
                            absl::StrCat("offset ", offset, " is not a multiple of ", alignment_));
      }
      if (offset > data_bytes || static_cast<uint64_t>(tensor.bytes) > data_bytes - offset) {
        return InvalidField(field, absl::StrCat(tensor.bytes, " bytes at offset ", offset,
                                                " end outside the file's ", data_bytes,
                                                " bytes of data; it is cut short or damaged"));
      }
      tensor.data = file_.data() + data + offset;
    }
    return absl::OkStatus();
  }

  absl::Status CheckOverlaps() const {
    std::vector<const GgufTensor*> order;
    order.reserve(contents_.tensors.size());
    for (const GgufTensor& tensor : contents_.tensors) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->data < b->data; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->data + order[i - 1]->bytes > order[i]->data) {
        return InvalidField(absl::StrCat("tensor ", Quoted(order[i]->name)),
                            absl::StrCat("overlaps ", Quoted(order[i - 1]->name)));
      }
    }
    return absl::OkStatus();
  }

  std::span<const std::byte> file_;
  GgufCursor cursor_;
  uint64_t tensor_count_ = 0;
  uint64_t metadata_count_ = 0;
  uint32_t alignment_ = kDefaultAlignment;
  std::vector<uint64_t> offsets_;  // of contents_.tensors
  GgufContents contents_;
};

}  // namespace

absl::StatusOr<GgufContents> ParseGguf(std::span<const std::byte> file) {
  return Parser(file).Parse();
}

}  // namespace setu::model
