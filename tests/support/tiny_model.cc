// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiny_model.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/synthetic_model.h"

namespace setu::test {

static_assert(kTinyEndOfText == model::kSyntheticEndOfText);
static_assert(kTinyStart == model::kSyntheticStart);
static_assert(kTinyEnd == model::kSyntheticEnd);
static_assert(kTinyFirstByte == model::kSyntheticFirstByte);
static_assert(kTinyVocabulary == model::kSyntheticVocabulary);

model::GgufWriter TinyModel(const TinyModelOptions& o) {
  const model::SyntheticModel tiny({.seed = o.seed,
                                    .name = absl::StrCat("Tiny ", o.architecture, " ", o.seed),
                                    .architecture = o.architecture,
                                    .weights = {o.weights, std::nullopt},
                                    .tied = o.tied,
                                    .layers = o.layers,
                                    .hidden = o.hidden,
                                    .ffn_hidden = o.ffn_hidden,
                                    .heads = o.heads,
                                    .kv_heads = o.kv_heads,
                                    .head_dim = o.head_dim,
                                    .context = o.context,
                                    .vocabulary = kTinyVocabulary});
  model::GgufWriter writer = tiny.layout();
  for (size_t i = 0; i < writer.tensors.size(); ++i) {
    model::GgufWriter::Tensor& tensor = writer.tensors[i];
    tensor.data.resize(tensor.reserved);
    tensor.reserved = 0;  // a test may cut the data
    std::vector<float> values(tiny.Cols(i));
    for (int64_t row = 0; row < tiny.Rows(i); ++row) {
      tiny.WriteRow(i, row, values,
                    reinterpret_cast<std::byte*>(tensor.data.data()) + row * tiny.RowBytes(i));
    }
  }
  return writer;
}

std::string WriteTinyModel(const TempDir& dir, const TinyModelOptions& options,
                           std::string_view name) {
  return dir.Write(name, TinyModel(options).Bytes());
}

}  // namespace setu::test
