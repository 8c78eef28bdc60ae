// SPDX-License-Identifier: Apache-2.0
#include "common/model/packed_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/digest.h"
#include "common/model/gguf_cursor.h"

namespace setu::model {
namespace {

// Raised with every change of how the file lies, and of how Weights::digest and the checksums are
// made: then the caches of before are not used. What packs has a revision of its own.
constexpr int kFormat = 1;
constexpr size_t kPage = 4096;
constexpr size_t kAhead = size_t{16} << 20;  // asked of the disk before they are read
constexpr size_t kPiece = kernels::Ops::kRestorePiece;

size_t RoundUpToPages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The digest, a checksum of each matrix, and the seal.
size_t NumberBytes(size_t matrices) { return (matrices + 2) * sizeof(uint64_t); }

uint64_t SealOf(std::span<const uint64_t> numbers) {
  Digest seal;
  seal.Add(numbers.data(), numbers.size_bytes());
  return seal.value();
}

// A matrix's checksum is the sum of those of its pieces, which threads may read in any order.
uint64_t PieceChecksum(size_t offset, std::span<const std::byte> piece) {
  Digest checksum;
  checksum.Add(&offset, sizeof(offset));
  checksum.Add(piece.data(), piece.size());
  return checksum.value();
}

// How many of the bytes there are; -1: errno says why they cannot be read.
ssize_t ReadAt(int fd, size_t offset, std::span<std::byte> to) {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t n = pread(fd, to.data() + done, to.size() - done, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

absl::Status WriteAt(int fd, size_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t n = pwrite(fd, from.data(), from.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "write");
    if (n == 0) return absl::DataLossError("a write that took no byte");
    offset += static_cast<size_t>(n);
    from = from.subspan(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// Room for all of it at once, so that a disk without it is not filled first. Where the file system
// knows no such promise, the writes find out.
absl::Status TakeRoom(int fd, size_t bytes) {
  if (ftruncate(fd, 0) != 0) return absl::ErrnoToStatus(errno, "truncate");
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return absl::OkStatus();
  if (errno == EOPNOTSUPP || errno == ENOSYS) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("take room for ", bytes, " bytes"));
}

bool IsAt(const std::string& path, int fd) {
  struct stat there {
  }, held{};
  return lstat(path.c_str(), &there) == 0 && fstat(fd, &held) == 0 && there.st_dev == held.st_dev &&
         there.st_ino == held.st_ino;
}

// The first line that differs.
std::string Difference(std::string_view found, std::string_view expected) {
  const auto at = std::ranges::mismatch(found, expected).in2 - expected.begin();
  const size_t begin = expected.substr(0, at).rfind('\n') + 1;  // npos + 1 is 0
  const auto line = [&](std::string_view text) {
    return text.substr(begin, text.substr(begin).find('\n'));
  };
  return absl::StrCat("it says ", Quoted(line(found)), ", not ", Quoted(line(expected)));
}

}  // namespace

PackedCache::PackedCache(const GgufFile& model, FloatWeights floats,
                         std::span<const GgufTensor> matrices, kernels::Ops& ops)
    : ops_(ops) {
  const kernels::PackFormat format = ops.pack_format();
  path_ = absl::StrCat(model.path(), ".", format.order, "-", FloatWeightsName(floats), ".packed");
  const GgufIdentity& identity = model.identity();
  text_ = absl::StrCat(
      "Setu packed weights, format ", kFormat, ", pieces of ", kPiece, "\npacked as ", format.order,
      ", revision ", format.revision, "\nfloats become ", FloatWeightsName(floats), "\nmodel of ",
      identity.bytes, " bytes\nmodel modified at ", identity.modified_ns,
      " ns\nmodel header has the digest ", absl::Hex(identity.header_digest), "\n");
  size_t offset = 0;  // behind text and numbers
  for (const GgufTensor& tensor : matrices) {
    const kernels::WeightType type = PackedType(tensor, floats);
    const size_t bytes = ops.PackedBytes(type, tensor.rows(), tensor.cols());
    places_.push_back({tensor.name, type, tensor.rows(), tensor.cols(), offset, bytes});
    absl::StrAppend(&text_, tensor.name, " ", kernels::WeightTypeName(tensor.type), " as ",
                    kernels::WeightTypeName(type), " [", tensor.rows(), ", ", tensor.cols(), "], ",
                    bytes, " bytes at ", offset, "\n");
    offset += RoundUpToPages(bytes);
  }
  absl::StrAppend(&text_, "end\n");
  const size_t first = RoundUpToPages(text_.size() + NumberBytes(places_.size()));
  for (Place& place : places_) place.offset += first;
  bytes_ = first + offset;
}

absl::Status PackedCache::CheckText(int fd) const {
  struct stat info {};
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "stat");
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError("it is not a regular file");
  std::string found(text_.size(), '\0');
  const ssize_t n = ReadAt(fd, 0, std::as_writable_bytes(std::span(found)));
  if (n < 0) return absl::ErrnoToStatus(errno, "read");
  found.resize(static_cast<size_t>(n));
  if (found != text_) return absl::FailedPreconditionError(Difference(found, text_));
  if (info.st_size == static_cast<off_t>(bytes_)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("it has ", info.st_size, " bytes, not ", bytes_));
}

absl::StatusOr<std::vector<uint64_t>> PackedCache::ReadNumbers(int fd) const {
  std::vector<uint64_t> numbers(NumberBytes(places_.size()) / sizeof(uint64_t));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(numbers));
  if (ReadAt(fd, text_.size(), bytes) != std::ssize(bytes)) {
    return absl::DataLossError("its checksums cannot be read");
  }
  const uint64_t seal = numbers.back();
  numbers.pop_back();
  if (SealOf(numbers) != seal) return absl::DataLossError("its checksums are damaged");
  return numbers;
}

absl::StatusOr<std::unique_ptr<kernels::PackedMatrix>> PackedCache::ReadMatrix(
    int fd, const Place& place, uint64_t checksum) const {
  std::atomic<uint64_t> sum = 0;
  const auto fill = [&](size_t offset, std::span<std::byte> to) {
    posix_fadvise(fd, static_cast<off_t>(place.offset + offset + kAhead), kPiece,
                  POSIX_FADV_WILLNEED);
    if (ReadAt(fd, place.offset + offset, to) != std::ssize(to)) return false;
    sum += PieceChecksum(offset, to);
    return true;
  };
  try {
    auto matrix = ops_.Restore(place.type, place.rows, place.cols, fill);
    if (matrix == nullptr) {
      return absl::DataLossError(absl::StrCat(Quoted(place.name), " cannot be read"));
    }
    if (sum != checksum) {
      return absl::DataLossError(absl::StrCat(Quoted(place.name), " is damaged"));
    }
    return matrix;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", Quoted(place.name)));
  }
}

absl::StatusOr<PackedCache::Contents> PackedCache::Read(const Progress& progress) const {
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, "open");
  const absl::Cleanup close_fd = [fd] { close(fd); };
  SETU_RETURN_IF_ERROR(CheckText(fd));
  SETU_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ReadNumbers(fd));
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);  // reads ahead by more
  Contents contents = {.matrices = {}, .digest = numbers[0]};
  for (size_t i = 0; i < places_.size(); ++i) {
    SETU_ASSIGN_OR_RETURN(auto matrix, ReadMatrix(fd, places_[i], numbers[i + 1]));
    contents.matrices.push_back(std::move(matrix));
    const size_t end = places_[i].offset + RoundUpToPages(places_[i].bytes);
    if (progress) progress(static_cast<double>(end) / static_cast<double>(bytes_));
  }
  return contents;
}

absl::Status PackedCache::WriteAll(int fd, std::span<const kernels::PackedMatrix* const> matrices,
                                   uint64_t digest) const {
  SETU_RETURN_IF_ERROR(TakeRoom(fd, bytes_));
  std::vector<uint64_t> numbers = {digest};
  for (size_t i = 0; i < places_.size(); ++i) {
    const std::span<const std::byte> data = matrices[i]->data();
    SETU_CHECK(data.size() == places_[i].bytes, "a packed matrix has the bytes of its place");
    uint64_t checksum = 0;
    for (size_t at = 0; at < data.size(); at += kPiece) {
      const auto piece = data.subspan(at, std::min(kPiece, data.size() - at));
      checksum += PieceChecksum(at, piece);
      SETU_RETURN_IF_ERROR(WriteAt(fd, places_[i].offset + at, piece));
    }
    numbers.push_back(checksum);
  }
  numbers.push_back(SealOf(numbers));
  SETU_RETURN_IF_ERROR(WriteAt(fd, text_.size(), std::as_bytes(std::span(numbers))));
  SETU_RETURN_IF_ERROR(WriteAt(fd, 0, std::as_bytes(std::span(text_))));
  if (ftruncate(fd, static_cast<off_t>(bytes_)) != 0) return absl::ErrnoToStatus(errno, "truncate");
  if (fsync(fd) != 0) return absl::ErrnoToStatus(errno, "sync");
  return absl::OkStatus();
}

// All writers of a path use one temporary name, and who holds its lock may write: so what a killed
// one has left is the next one's, and nothing piles up.
absl::Status PackedCache::Write(std::span<const kernels::PackedMatrix* const> matrices,
                                uint64_t digest) const {
  SETU_CHECK(matrices.size() == places_.size(), "a cache is written whole");
  const std::string temporary = path_ + ".tmp";
  const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                      S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  if (fd < 0) return absl::ErrnoToStatus(errno, "create");
  const absl::Cleanup close_fd = [fd] { close(fd); };
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? absl::AbortedError("another process writes it")
                                : absl::ErrnoToStatus(errno, "lock");
  }
  // Whoever had the lock before may have renamed it, or taken it away.
  if (!IsAt(temporary, fd)) return absl::AbortedError("another process has written it");
  absl::Status status = WriteAll(fd, matrices, digest);
  if (status.ok() && rename(temporary.c_str(), path_.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, "rename");
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace setu::model
