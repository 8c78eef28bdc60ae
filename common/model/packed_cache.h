// SPDX-License-Identifier: Apache-2.0
// Packed matrices kept in a file beside their model, so that the next start reads what this one has
// packed: m.gguf.lanes-int8.packed, of m.gguf for --weights=int8 in the pack order "lanes".
//
//   const PackedCache cache(file, FloatWeights::kInt8, matrices, ops);
//   absl::StatusOr<PackedCache::Contents> kept = cache.Read(progress);
//   if (!kept.ok()) { ...pack them...; absl::Status written = cache.Write(packed, digest); }
//
// The file begins with a text: a line for each thing that the packed bytes depend on. Behind it are
// the model's digest and a checksum of each matrix, sealed by one of their own, then the matrices,
// each from a page's border on. A reader takes no size and no place from the file: it makes the
// text that it would write itself, and any other is not its own. So a file is used that is whole
// and of this very model, packed this very way; as for the model itself, accidents are found, not
// attacks.
#ifndef SETU_COMMON_MODEL_PACKED_CACHE_H_
#define SETU_COMMON_MODEL_PACKED_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/gguf.h"
#include "common/model/weights.h"
#include "kernels/ops.h"

namespace setu::model {

class PackedCache {
 public:
  struct Contents {
    std::vector<std::unique_ptr<kernels::PackedMatrix>> matrices;  // in the order of the tensors
    uint64_t digest = 0;                                           // Weights::digest
  };

  // Of `matrices`, tensors of `model` that `ops`, which outlives it, packs as `floats` says.
  PackedCache(const GgufFile& model, FloatWeights floats, std::span<const GgufTensor> matrices,
              kernels::Ops& ops);

  const std::string& path() const { return path_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }  // of the file

  // NOT_FOUND where there is none, FAILED_PRECONDITION where it is of something else, DATA_LOSS
  // where it is damaged or a part of it cannot be read, another where none of it can,
  // RESOURCE_EXHAUSTED where memory lacks: the message says what is wrong.
  absl::StatusOr<Contents> Read(const Progress& progress) const;

  // Whole or not at all: what is there until then stays, and is replaced at once. ABORTED where
  // another process is writing it; else what the system refused. Nothing is left of a failure, and
  // what a writer that was killed has left is written over.
  absl::Status Write(std::span<const kernels::PackedMatrix* const> matrices, uint64_t digest) const;

 private:
  struct Place {
    std::string name;  // of the tensor
    kernels::WeightType type = kernels::WeightType::kF32;
    int64_t rows = 0, cols = 0;
    size_t offset = 0, bytes = 0;
  };

  absl::Status CheckText(int fd) const;
  absl::StatusOr<std::vector<uint64_t>> ReadNumbers(int fd) const;
  absl::StatusOr<std::unique_ptr<kernels::PackedMatrix>> ReadMatrix(int fd, const Place& place,
                                                                    uint64_t checksum) const;
  absl::Status WriteAll(int fd, std::span<const kernels::PackedMatrix* const> matrices,
                        uint64_t digest) const;

  kernels::Ops& ops_;
  std::string path_;
  std::string text_;
  std::vector<Place> places_;
  size_t bytes_ = 0;
};

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_PACKED_CACHE_H_
