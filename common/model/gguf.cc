// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/digest.h"
#include "common/model/gguf_cursor.h"
#include "common/model/gguf_parser.h"

namespace setu::model {
namespace {

// A page fault maps pages around it too, as many as one page table holds at most (Linux: folios and
// fault_around_bytes), so that releasing a tensor has to cover the tables at its edges.
constexpr uintptr_t kFaultWindow = 2 << 20;

constexpr int64_t kNanoseconds = 1'000'000'000;

struct Mapping {
  const std::byte* data;
  size_t size;
  int64_t modified_ns;
};

absl::StatusOr<Mapping> Map(const std::string& path) {
  auto failed = [&](const char* what) {
    return absl::ErrnoToStatus(errno, absl::StrCat("load failed: ", path, ": ", what));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed("open");
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return failed("stat");
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "load failed: ", path, ": ", S_ISREG(info.st_mode) ? "is empty" : "is not a regular file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return failed("mmap");
  return Mapping{static_cast<const std::byte*>(data), size,
                 info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec};
}

GgufIdentity IdentityOf(const Mapping& mapping, const std::vector<GgufTensor>& tensors) {
  const std::byte* end = mapping.data + mapping.size;
  for (const GgufTensor& tensor : tensors) end = std::min(end, tensor.data);
  Digest header;
  header.Add(mapping.data, static_cast<size_t>(end - mapping.data));
  return {static_cast<int64_t>(mapping.size), mapping.modified_ns, header.value()};
}

}  // namespace

int64_t GgufTensor::rows() const {
  int64_t rows = 1;
  for (size_t d = 1; d < shape.size(); ++d) rows *= shape[d];
  return rows;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  SETU_ASSIGN_OR_RETURN(const Mapping mapping, Map(path));
  std::unique_ptr<GgufFile> file(new GgufFile());
  file->path_ = path;
  file->data_ = mapping.data;
  file->size_ = mapping.size;
  absl::StatusOr<GgufContents> contents = ParseGguf({mapping.data, mapping.size});
  if (!contents.ok()) return file->Invalid(std::string(contents.status().message()));
  file->metadata_ = std::move(contents->metadata);
  file->tensors_ = std::move(contents->tensors);
  file->tensor_index_ = std::move(contents->tensor_index);
  file->identity_ = IdentityOf(mapping, file->tensors_);
  file->ReleasePages(mapping.data, mapping.size);  // metadata was copied, data not yet read
  return file;
}

GgufFile::~GgufFile() { munmap(const_cast<std::byte*>(data_), size_); }

absl::Status GgufFile::Invalid(const std::string& problem) const {
  return absl::InvalidArgumentError(absl::StrCat("load failed: ", path_, ": ", problem));
}

absl::StatusOr<const GgufFile::Value*> GgufFile::Find(std::string_view key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) {
    return absl::NotFoundError(
        absl::StrCat("load failed: ", path_, ": metadata ", Quoted(key), " is missing"));
  }
  return &found->second;
}

template <typename T>
absl::StatusOr<const T*> GgufFile::FindAs(std::string_view key, const std::string& wanted) const {
  SETU_ASSIGN_OR_RETURN(const Value* value, Find(key));
  if (const T* held = std::get_if<T>(value)) return held;
  return Invalid(absl::StrCat("metadata ", Quoted(key), " is not ", wanted));
}

absl::StatusOr<uint32_t> GgufFile::Uint32(std::string_view key) const {
  SETU_ASSIGN_OR_RETURN(const Value* value, Find(key));
  const uint64_t* plain = std::get_if<uint64_t>(value);
  const int64_t* with_sign = std::get_if<int64_t>(value);
  if (plain && std::in_range<uint32_t>(*plain)) return static_cast<uint32_t>(*plain);
  if (with_sign && std::in_range<uint32_t>(*with_sign)) return static_cast<uint32_t>(*with_sign);
  return Invalid(absl::StrCat("metadata ", Quoted(key), " is not an integer of 0 to 2^32 - 1"));
}

absl::StatusOr<float> GgufFile::Float(std::string_view key) const {
  SETU_ASSIGN_OR_RETURN(const double* value, FindAs<double>(key, "a float"));
  return static_cast<float>(*value);
}

absl::StatusOr<bool> GgufFile::Bool(std::string_view key) const {
  SETU_ASSIGN_OR_RETURN(const bool* value, FindAs<bool>(key, "a bool"));
  return *value;
}

absl::StatusOr<std::string> GgufFile::String(std::string_view key) const {
  SETU_ASSIGN_OR_RETURN(const std::string* value, FindAs<std::string>(key, "a string"));
  return *value;
}

absl::StatusOr<const GgufFile::Strings*> GgufFile::StringArray(std::string_view key) const {
  return FindAs<Strings>(key, "an array of strings");
}

absl::StatusOr<const std::vector<float>*> GgufFile::FloatArray(std::string_view key) const {
  return FindAs<std::vector<float>>(key, "an array of floats");
}

absl::StatusOr<const std::vector<int32_t>*> GgufFile::Int32Array(std::string_view key) const {
  return FindAs<std::vector<int32_t>>(key, "an array of integers");
}

bool GgufFile::Has(std::string_view key) const { return metadata_.contains(key); }

absl::StatusOr<GgufTensor> GgufFile::Tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  if (found == tensor_index_.end()) {
    return absl::NotFoundError(
        absl::StrCat("load failed: ", path_, ": tensor ", Quoted(name), " is missing"));
  }
  return tensors_[found->second];
}

bool GgufFile::HasTensor(std::string_view name) const { return tensor_index_.contains(name); }

void GgufFile::Release(const GgufTensor& tensor) const {
  ReleasePages(tensor.data, static_cast<size_t>(tensor.bytes));
}

void GgufFile::ReleasePages(const std::byte* begin, size_t bytes) const {
  const auto map_begin = reinterpret_cast<uintptr_t>(data_);
  const auto first = reinterpret_cast<uintptr_t>(begin) / kFaultWindow * kFaultWindow;
  const auto last = reinterpret_cast<uintptr_t>(begin) + bytes + kFaultWindow;
  const auto from = std::max(map_begin, first);
  const auto to = std::min(map_begin + size_, last / kFaultWindow * kFaultWindow);
  // Advice: where the kernel refuses it, pages stay until memory is short, and nothing else.
  madvise(const_cast<std::byte*>(data_) + (from - map_begin), to - from, MADV_DONTNEED);
}

}  // namespace setu::model
