// SPDX-License-Identifier: Apache-2.0
#include "common/model/weights.h"

#include <cstring>
#include <map>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/model/digest.h"
#include "common/model/gguf_cursor.h"
#include "common/model/packed_cache.h"

namespace setu::model {
namespace {

constexpr char kEmbedding[] = "token_embd.weight", kOutput[] = "output.weight";
constexpr char kRopeDivisors[] = "rope_freqs.weight";  // ReadModelConfig takes it

// Where a tensor of the file goes, and the shape it must have.
struct Slot {
  std::string name;
  std::vector<int64_t> shape;  // GGML order, innermost first
  std::variant<Matrix*, Vector*> target;
};

void AddLayer(const ModelConfig& c, int32_t index, LayerWeights& layer, std::vector<Slot>& slots) {
  const int64_t q = int64_t{c.heads} * c.head_dim, kv = int64_t{c.kv_heads} * c.head_dim;
  auto add = [&](const char* name, std::vector<int64_t> shape, std::variant<Matrix*, Vector*> to) {
    slots.push_back({absl::StrCat("blk.", index, ".", name), std::move(shape), to});
  };
  add("attn_norm.weight", {c.hidden}, &layer.attention_norm);
  add("attn_q.weight", {c.hidden, q}, &layer.wq);
  add("attn_k.weight", {c.hidden, kv}, &layer.wk);
  add("attn_v.weight", {c.hidden, kv}, &layer.wv);
  if (c.qkv_bias) {
    add("attn_q.bias", {q}, &layer.bq);
    add("attn_k.bias", {kv}, &layer.bk);
    add("attn_v.bias", {kv}, &layer.bv);
  }
  if (c.qk_norm) {
    add("attn_q_norm.weight", {c.head_dim}, &layer.q_norm);
    add("attn_k_norm.weight", {c.head_dim}, &layer.k_norm);
  }
  add("attn_output.weight", {q, c.hidden}, &layer.wo);
  add("ffn_norm.weight", {c.hidden}, &layer.ffn_norm);
  add("ffn_gate.weight", {c.hidden, c.ffn_hidden}, &layer.w_gate);
  add("ffn_up.weight", {c.hidden, c.ffn_hidden}, &layer.w_up);
  add("ffn_down.weight", {c.ffn_hidden, c.hidden}, &layer.w_down);
}

// Every tensor that a model of this config has. `weights` must outlive the slots.
std::vector<Slot> Slots(const ModelConfig& c, Weights& weights) {
  std::vector<Slot> slots;
  slots.push_back({kEmbedding, {c.hidden, c.vocabulary}, &weights.embedding});
  weights.layers.resize(static_cast<size_t>(c.layers));
  for (int32_t i = 0; i < c.layers; ++i) AddLayer(c, i, weights.layers[i], slots);
  slots.push_back({"output_norm.weight", {c.hidden}, &weights.output_norm});
  if (!c.tied_embeddings) {
    slots.push_back({kOutput, {c.hidden, c.vocabulary}, &weights.output});
  }
  return slots;
}

absl::Status CheckTensor(const GgufFile& file, const GgufTensor& tensor, const Slot& slot) {
  if (tensor.shape != slot.shape) {
    return file.Invalid(absl::StrCat("tensor ", Quoted(slot.name), " has shape [",
                                     absl::StrJoin(tensor.shape, ", "), "], not [",
                                     absl::StrJoin(slot.shape, ", "), "]"));
  }
  if (std::holds_alternative<Vector*>(slot.target) && tensor.type != kernels::WeightType::kF32) {
    return file.Invalid(absl::StrCat("tensor ", Quoted(slot.name), " is ",
                                     kernels::WeightTypeName(tensor.type),
                                     "; norms and biases are F32"));
  }
  return absl::OkStatus();
}

// All of it before any packing: a wrong file fails at once, not after minutes.
absl::Status CheckTensors(const GgufFile& file, const std::vector<Slot>& slots) {
  std::set<std::string_view> known = {kRopeDivisors};
  for (const Slot& slot : slots) {
    SETU_ASSIGN_OR_RETURN(const GgufTensor tensor, file.Tensor(slot.name));
    SETU_RETURN_IF_ERROR(CheckTensor(file, tensor, slot));
    known.insert(slot.name);
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (!known.contains(tensor.name)) {
      return file.Invalid(
          absl::StrCat("tensor ", Quoted(tensor.name), " belongs to no part of this model"));
    }
  }
  return absl::OkStatus();
}

void AddValue(const GgufFile::Value& value, Digest& digest) {
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) {
          digest.Add(held);
        } else if constexpr (std::is_same_v<Held, GgufFile::Strings>) {
          for (const std::string& text : held) digest.Add(text);
        } else if constexpr (std::is_arithmetic_v<Held>) {
          digest.Add(&held, sizeof(held));
        } else {
          digest.Add(held.data(), held.size() * sizeof(held[0]));
        }
      },
      value);
}

// What decides the forward pass: the architecture's keys. Names, licences and the tokenizer do not.
void AddConfig(const GgufFile& file, const ModelConfig& config, Digest& digest) {
  digest.Add(config.architecture);
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(config.architecture + ".")) continue;
    digest.Add(key);
    AddValue(value, digest);
  }
}

void AddTensor(const GgufTensor& tensor, FloatWeights floats, Digest& digest) {
  digest.Add(tensor.name);
  digest.Add(&tensor.type, sizeof(tensor.type));
  digest.Add(tensor.data, static_cast<size_t>(tensor.bytes));
  const kernels::WeightType packed = PackedType(tensor, floats);
  if (packed != tensor.type) digest.Add(&packed, sizeof(packed));
}

size_t Copy(const GgufTensor& tensor, Vector& to) {
  to.resize(static_cast<size_t>(tensor.cols()));
  std::memcpy(to.data(), tensor.data, static_cast<size_t>(tensor.bytes));
  return static_cast<size_t>(tensor.bytes);
}

size_t Fill(const GgufTensor& tensor, FloatWeights, kernels::Ops&, Vector* to) {
  return Copy(tensor, *to);
}

size_t Fill(const GgufTensor& tensor, FloatWeights floats, kernels::Ops& ops, Matrix* to) {
  *to = ops.PackAs(tensor.matrix(), PackedType(tensor, floats));
  return (*to)->bytes();
}

absl::Status FillOne(const GgufTensor& tensor, const Slot& slot, FloatWeights floats,
                     kernels::Ops& ops, Weights& weights) {
  try {
    weights.packed_bytes +=
        std::visit([&](auto* to) { return Fill(tensor, floats, ops, to); }, slot.target);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("load failed: no memory to pack tensor ", Quoted(slot.name), " of ",
                     tensor.bytes, " bytes beside the ", weights.packed_bytes,
                     " bytes packed before; give more memory or a smaller model"));
  }
  return absl::OkStatus();
}

// Fills all slots, and what else is in `weights`.
absl::Status PackAll(const GgufFile& file, const ModelConfig& config,
                     const std::vector<Slot>& slots, FloatWeights floats, kernels::Ops& ops,
                     const Progress& progress, Weights& weights) {
  Digest digest;
  AddConfig(file, config, digest);
  double total = 0, done = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.name == kRopeDivisors) {
      AddTensor(tensor, floats, digest);
    } else {
      total += static_cast<double>(tensor.bytes);
    }
  }
  for (const Slot& slot : slots) {
    SETU_ASSIGN_OR_RETURN(const GgufTensor tensor, file.Tensor(slot.name));
    AddTensor(tensor, floats, digest);
    SETU_RETURN_IF_ERROR(FillOne(tensor, slot, floats, ops, weights));
    file.Release(tensor);
    done += static_cast<double>(tensor.bytes);
    if (progress) progress(done / total);
  }
  weights.digest = digest.value();
  return absl::OkStatus();
}

// The same where the matrices were packed before; vectors are few, and come from the file.
absl::Status TakeAll(const GgufFile& file, const std::vector<Slot>& slots,
                     PackedCache::Contents contents, Weights& weights) {
  auto next = contents.matrices.begin();
  for (const Slot& slot : slots) {
    if (Matrix* const* matrix = std::get_if<Matrix*>(&slot.target)) {
      **matrix = std::move(*next++);
      weights.packed_bytes += (**matrix)->bytes();
    } else {
      SETU_ASSIGN_OR_RETURN(const GgufTensor tensor, file.Tensor(slot.name));
      weights.packed_bytes += Copy(tensor, *std::get<Vector*>(slot.target));
      file.Release(tensor);
    }
  }
  weights.digest = contents.digest;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GgufTensor>> MatricesOf(const GgufFile& file,
                                                   const std::vector<Slot>& slots) {
  std::vector<GgufTensor> matrices;
  for (const Slot& slot : slots) {
    if (!std::holds_alternative<Matrix*>(slot.target)) continue;
    SETU_ASSIGN_OR_RETURN(GgufTensor tensor, file.Tensor(slot.name));
    matrices.push_back(std::move(tensor));
  }
  return matrices;
}

// In the order of MatricesOf.
std::vector<const kernels::PackedMatrix*> PackedIn(const std::vector<Slot>& slots) {
  std::vector<const kernels::PackedMatrix*> packed;
  for (const Slot& slot : slots) {
    if (Matrix* const* matrix = std::get_if<Matrix*>(&slot.target)) {
      packed.push_back((*matrix)->get());
    }
  }
  return packed;
}

}  // namespace

absl::StatusOr<FloatWeights> ParseFloatWeights(const std::string& name) {
  if (name == "auto") return FloatWeights::kAsInFile;
  if (name == "int8") return FloatWeights::kInt8;
  if (name == "int4") return FloatWeights::kInt4;
  return absl::InvalidArgumentError(
      absl::StrCat("--weights=", name, " is unknown: use auto, int8 or int4"));
}

const char* FloatWeightsName(FloatWeights floats) {
  switch (floats) {
    case FloatWeights::kAsInFile:
      return "auto";
    case FloatWeights::kInt8:
      return "int8";
    case FloatWeights::kInt4:
      return "int4";
  }
  return "";
}

kernels::WeightType PackedType(const GgufTensor& tensor, FloatWeights floats) {
  using kernels::WeightType;
  constexpr WeightType kInt8 = WeightType::kQ8_0, kInt4 = WeightType::kQ4_0;
  const bool is_vector = tensor.shape.size() < 2;
  const bool is_quantised = kernels::BlockValues(tensor.type) != 1;
  const bool whole_groups = tensor.cols() % kernels::BlockValues(kInt8) == 0;
  if (floats == FloatWeights::kAsInFile || is_vector || is_quantised || !whole_groups) {
    return tensor.type;
  }
  const bool of_vocabulary = tensor.name == kEmbedding || tensor.name == kOutput;
  return floats == FloatWeights::kInt8 || of_vocabulary ? kInt8 : kInt4;
}

int64_t PackedBytes(const GgufTensor& tensor, FloatWeights floats) {
  const kernels::WeightType type = PackedType(tensor, floats);
  if (type == tensor.type) return tensor.bytes;
  return kernels::RowBytes(type, tensor.cols()) * tensor.rows();
}

int64_t PackedBytes(const GgufFile& file, FloatWeights floats) {
  int64_t bytes = 0;
  for (const GgufTensor& tensor : file.tensors()) bytes += PackedBytes(tensor, floats);
  return bytes;
}

std::string MainType(const GgufFile& file, FloatWeights floats) {
  std::map<std::string, int64_t> bytes;
  for (const GgufTensor& tensor : file.tensors()) {
    bytes[kernels::WeightTypeName(PackedType(tensor, floats))] += PackedBytes(tensor, floats);
  }
  std::string main;
  for (const auto& [type, size] : bytes) {
    if (main.empty() || size > bytes[main]) main = type;
  }
  return main;
}

absl::StatusOr<Weights> LoadWeights(const GgufFile& file, const ModelConfig& config,
                                    FloatWeights floats, kernels::Ops& ops,
                                    const Progress& progress) {
  Weights weights;
  const std::vector<Slot> slots = Slots(config, weights);
  SETU_RETURN_IF_ERROR(CheckTensors(file, slots));
  SETU_RETURN_IF_ERROR(PackAll(file, config, slots, floats, ops, progress, weights));
  return weights;
}

absl::StatusOr<CachedWeights> LoadCachedWeights(const GgufFile& file, const ModelConfig& config,
                                                FloatWeights floats, kernels::Ops& ops,
                                                const Progress& progress) {
  CachedWeights loaded;
  Weights& weights = loaded.weights;
  const std::vector<Slot> slots = Slots(config, weights);
  SETU_RETURN_IF_ERROR(CheckTensors(file, slots));
  SETU_ASSIGN_OR_RETURN(const std::vector<GgufTensor> matrices, MatricesOf(file, slots));
  const PackedCache cache(file, floats, matrices, ops);
  absl::StatusOr<PackedCache::Contents> kept = cache.Read(progress);
  loaded.cache = {.path = cache.path(), .bytes = cache.bytes(), .read = kept.status()};
  if (kept.ok()) {
    SETU_RETURN_IF_ERROR(TakeAll(file, slots, *std::move(kept), weights));
    return loaded;
  }
  SETU_RETURN_IF_ERROR(PackAll(file, config, slots, floats, ops, progress, weights));
  loaded.cache.written = cache.Write(PackedIn(slots), weights.digest);
  return loaded;
}

}  // namespace setu::model
