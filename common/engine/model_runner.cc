// SPDX-License-Identifier: Apache-2.0
#include "common/engine/model_runner.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/engine/memory_limit.h"

namespace setu::engine {
namespace {

constexpr int64_t kLargestDefaultPool = int64_t{4} << 30;

// What every worker computes at load, so that two can tell whether their logits have equal bits.
constexpr int32_t kDigestPrompt = 70;
constexpr int32_t kDigestChunk = 32;
constexpr int32_t kDigestSteps = 8;

// FNV-1a, 64 bits.
class Digest {
 public:
  void Add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      value_ = (value_ ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
    }
  }
  void Add(uint64_t number) { Add(&number, sizeof number); }
  // The length goes first: {"ab", "c"} is not {"a", "bc"}.
  void Add(std::string_view text) {
    Add(text.size());
    Add(text.data(), text.size());
  }
  template <typename T>
  void Add(const std::vector<T>& values) {
    Add(values.size());
    if constexpr (std::is_arithmetic_v<T>) {
      Add(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) Add(value);
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

int32_t DigestTokens(const model::ModelConfig& config) {
  return std::min(kDigestPrompt + kDigestSteps, config.context_length);
}

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

int64_t Unit(int64_t bytes) { return bytes < kMiB ? kKiB : kMiB; }

// As the flag takes it, rounded down.
std::string Size(int64_t bytes) {
  return absl::StrCat(bytes / Unit(bytes), bytes < kMiB ? "KiB" : "MiB");
}

std::string SizeThatHolds(int64_t bytes) {
  const int64_t unit = Unit(bytes);
  return Size((bytes + unit - 1) / unit * unit);
}

absl::StatusOr<int64_t> KvMemory(const RunnerOptions& options, int64_t weight_bytes) {
  const int64_t limit = MemoryLimitBytes();
  const int64_t asked = options.kv_memory_bytes;
  if (asked <= 0) return std::min(limit / 4, kLargestDefaultPool);
  const int64_t most = std::max<int64_t>(limit - weight_bytes, 0);
  if (asked <= most) return asked;
  return absl::InvalidArgumentError(absl::StrCat(
      "--kv-memory is ", Size(asked), "; it must be at most ", Size(most), ": the memory limit is ",
      Size(limit), ", and the weights take ", Size(weight_bytes), " of it"));
}

// As many as the memory has room for, but no more than max_logits whole contexts could fill.
absl::StatusOr<int32_t> PoolBlocks(const RunnerOptions& options, const model::ModelConfig& config,
                                   const kv::KvLayout& layout, int64_t weight_bytes) {
  SETU_ASSIGN_OR_RETURN(const int64_t memory, KvMemory(options, weight_bytes));
  const int64_t useful =
      int64_t{1} * options.max_logits * kv::BlocksFor(config.context_length, layout.block_tokens);
  const int64_t blocks = std::min({memory / static_cast<int64_t>(layout.block_bytes()), useful,
                                   int64_t{std::numeric_limits<int32_t>::max()}});
  const int32_t least = kv::BlocksFor(DigestTokens(config), layout.block_tokens);
  if (blocks < least) {
    const int64_t least_bytes = least * static_cast<int64_t>(layout.block_bytes());
    return absl::InvalidArgumentError(absl::StrCat(
        options.kv_memory_bytes > 0 ? "--kv-memory" : "a quarter of the memory limit", " is ",
        Size(memory), "; the KV of the tokens that a start computes takes more: give --kv-memory ",
        SizeThatHolds(least_bytes), " or more"));
  }
  return static_cast<int32_t>(blocks);
}

}  // namespace

uint64_t TokenizerDigest(const model::GgufFile& file) {
  Digest digest;
  for (const auto& [key, value] : file.metadata()) {
    if (!absl::StartsWith(key, "tokenizer.")) continue;
    digest.Add(key);
    std::visit(
        [&digest]<typename T>(const T& v) {
          if constexpr (std::is_arithmetic_v<T>) {
            digest.Add(&v, sizeof v);
          } else {
            digest.Add(v);
          }
        },
        value);
  }
  return digest.value();
}

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Load(const RunnerOptions& options,
                                                               const model::Progress& progress) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner());
  ModelRunner& r = *runner;
  r.options_ = options;
  SETU_ASSIGN_OR_RETURN(const auto file, model::GgufFile::Open(options.model_path));
  SETU_ASSIGN_OR_RETURN(r.config_, model::ReadModelConfig(*file));
  r.config_.quantization = model::MainType(*file, options.float_weights);
  SETU_ASSIGN_OR_RETURN(r.ops_, kernels::MakeCpuOps(options.cpu));
  const kv::KvLayout layout = {.block_tokens = options.block_tokens,
                               .layers = r.config_.layers,
                               .kv_heads = r.config_.kv_heads,
                               .head_dim = r.config_.head_dim,
                               .type = r.ops_->kv_type()};
  // Before the weights, which take their time.
  SETU_ASSIGN_OR_RETURN(
      const int32_t blocks,
      PoolBlocks(options, r.config_, layout, model::PackedBytes(*file, options.float_weights)));
  SETU_RETURN_IF_ERROR(r.LoadWeights(*file, progress));
  SETU_ASSIGN_OR_RETURN(r.storage_, kv::KvStorage::Create(layout, blocks));
  r.pool_ = std::make_unique<kv::BlockPool>(blocks);
  r.transformer_ = std::make_unique<model::Transformer>(r.config_, r.weights_, *r.ops_,
                                                        options.max_rows, options.max_logits);
  r.ids_.reserve(options.max_rows);
  r.sequences_.reserve(options.max_rows);
  r.logit_rows_.reserve(options.max_logits);
  r.fingerprint_ = {.model = r.weights_.digest,
                    .tokenizer = TokenizerDigest(*file),
                    .numerics = r.ops_->path_name(),
                    .logits_digest = r.DigestLogits(),
                    .layout = layout,
                    .allow_mixed_numerics = options.allow_mixed_numerics};
  return runner;
}

absl::Status ModelRunner::LoadWeights(const model::GgufFile& file,
                                      const model::Progress& progress) {
  if (options_.cache_packed) {
    SETU_ASSIGN_OR_RETURN(
        model::CachedWeights loaded,
        model::LoadCachedWeights(file, config_, options_.float_weights, *ops_, progress));
    weights_ = std::move(loaded.weights);
    cache_use_ = std::move(loaded.cache);
    return absl::OkStatus();
  }
  SETU_ASSIGN_OR_RETURN(weights_,
                        model::LoadWeights(file, config_, options_.float_weights, *ops_, progress));
  return absl::OkStatus();
}

kernels::ConstMatrix ModelRunner::Step(std::span<const StepEntry> entries,
                                       const model::LayerDone& layer_done) {
  ids_.clear();
  sequences_.clear();
  logit_rows_.clear();
  for (const StepEntry& entry : entries) {
    const int64_t end = entry.start + std::ssize(entry.ids);
    SETU_CHECK(!entry.ids.empty(), "an entry of a step has ids");
    SETU_CHECK(
        end <= std::ssize(entry.blocks) * options_.block_tokens && end <= config_.context_length,
        "an entry's blocks and the context cover its positions");
    sequences_.push_back({.first_row = std::ssize(ids_),
                          .rows = std::ssize(entry.ids),
                          .start = entry.start,
                          .blocks = entry.blocks});
    ids_.insert(ids_.end(), entry.ids.begin(), entry.ids.end());
    if (entry.want_logits) logit_rows_.push_back(static_cast<int32_t>(ids_.size()) - 1);
  }
  return transformer_->Forward({.ids = ids_, .sequences = sequences_, .logit_rows = logit_rows_},
                               *storage_, layer_done);
}

int32_t Runner::max_sequence_tokens() const {
  return static_cast<int32_t>(std::min<int64_t>(
      config_.context_length, int64_t{1} * pool_->total() * options_.block_tokens));
}

uint64_t ModelRunner::DigestLogits() {
  std::vector<TokenId> ids(DigestTokens(config_));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<TokenId>((i * 7919 + 101) % config_.vocabulary);
  }
  const int32_t prompt = std::min(kDigestPrompt, config_.context_length);
  const auto lease = pool_->Take(kv::BlocksFor(std::ssize(ids), options_.block_tokens));
  SETU_CHECK(lease.has_value(), "a new pool has room for the digest");
  Digest digest;
  for (int32_t start = 0, end = 0; start < std::ssize(ids); start = end) {
    // Logits count at the same positions in every worker. Where a step holds fewer rows than a
    // chunk has, the chunk takes several.
    const int32_t chunk_end = start < kDigestPrompt
                                  ? std::min((start / kDigestChunk + 1) * kDigestChunk, prompt)
                                  : start + 1;
    end = std::min(chunk_end, start + options_.max_rows);
    const StepEntry entry = {.ids = std::span(ids).subspan(start, end - start),
                             .start = start,
                             .blocks = lease->blocks(),
                             .want_logits = end == chunk_end};
    const kernels::ConstMatrix logits = Step({&entry, 1});
    if (entry.want_logits) digest.Add(logits.data, logits.cols * sizeof(float));
  }
  return digest.value();
}

}  // namespace setu::engine
