// SPDX-License-Identifier: Apache-2.0
// The forward pass against the architecture written down again, naively and in double.
#include "common/model/transformer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/support/tiny_model.h"

namespace setu::model {
namespace {

using Row = std::vector<double>;
using test::TinyModelOptions;

class NaiveModel {
 public:
  NaiveModel(const GgufFile& file, const ModelConfig& config) : file_(file), c_(config) {}

  // Logits of the last id, all positions computed at once without a cache.
  Row Logits(const std::vector<int32_t>& ids) const {
    std::vector<Row> x;
    const Row embedding = Values("token_embd.weight");
    for (int32_t id : ids) {
      x.emplace_back(embedding.begin() + id * c_.hidden, embedding.begin() + (id + 1) * c_.hidden);
    }
    for (int layer = 0; layer < c_.layers; ++layer) {
      Layer("blk." + std::to_string(layer) + ".", x);
    }
    const Row last = Norm(x.back(), "output_norm.weight");
    return Product(c_.tied_embeddings ? "token_embd" : "output", last);
  }

 private:
  Row Values(const std::string& name) const {
    if (!file_.HasTensor(name)) return {};
    const GgufTensor tensor = *file_.Tensor(name);
    std::vector<float> values(tensor.bytes / sizeof(float));
    std::memcpy(values.data(), tensor.data, tensor.bytes);
    return {values.begin(), values.end()};
  }

  Row Product(const std::string& name, const Row& x) const {
    const Row w = Values(name + ".weight");
    Row y = Values(name + ".bias");
    y.resize(w.size() / x.size());
    for (size_t r = 0; r < y.size(); ++r) {
      for (size_t k = 0; k < x.size(); ++k) y[r] += w[r * x.size() + k] * x[k];
    }
    return y;
  }

  // Each run of `weight`'s length is a row.
  Row Norm(const Row& x, const std::string& name) const {
    const Row weight = Values(name);
    Row y = x;
    for (size_t start = 0; start < x.size(); start += weight.size()) {
      double squares = 0;
      for (size_t i = 0; i < weight.size(); ++i) squares += x[start + i] * x[start + i];
      const double scale = 1 / std::sqrt(squares / weight.size() + c_.norm_eps);
      for (size_t i = 0; i < weight.size(); ++i) y[start + i] *= scale * weight[i];
    }
    return y;
  }

  void Rotate(Row& x, size_t position) const {
    const int half = c_.rotary_dim / 2;
    for (size_t head = 0; head < x.size(); head += c_.head_dim) {
      for (int i = 0; i < half; ++i) {
        const bool halves = c_.rope_kind == kernels::RopeKind::kHalves;
        double& a = x[head + (halves ? i : 2 * i)];
        double& b = x[head + (halves ? i + half : 2 * i + 1)];
        const double angle = position * std::pow(c_.rope_base, -2.0 * i / c_.rotary_dim);
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
    }
  }

  Row Attend(const Row& q, const std::vector<Row>& k, const std::vector<Row>& v,
             size_t position) const {
    Row out(q.size(), 0.0);
    for (int head = 0; head < c_.heads; ++head) {
      const int kv = head / (c_.heads / c_.kv_heads) * c_.head_dim;
      Row scores(position + 1, 0.0);
      double sum = 0;
      for (size_t p = 0; p <= position; ++p) {
        for (int i = 0; i < c_.head_dim; ++i) scores[p] += q[head * c_.head_dim + i] * k[p][kv + i];
        scores[p] = std::exp(scores[p] / std::sqrt(c_.head_dim));
        sum += scores[p];
      }
      for (size_t p = 0; p <= position; ++p) {
        for (int i = 0; i < c_.head_dim; ++i) {
          out[head * c_.head_dim + i] += scores[p] / sum * v[p][kv + i];
        }
      }
    }
    return out;
  }

  void Layer(const std::string& block, std::vector<Row>& x) const {
    std::vector<Row> q, k, v;
    for (size_t p = 0; p < x.size(); ++p) {
      const Row normed = Norm(x[p], block + "attn_norm.weight");
      q.push_back(Product(block + "attn_q", normed));
      k.push_back(Product(block + "attn_k", normed));
      v.push_back(Product(block + "attn_v", normed));
      if (c_.qk_norm) {
        q[p] = Norm(q[p], block + "attn_q_norm.weight");
        k[p] = Norm(k[p], block + "attn_k_norm.weight");
      }
      Rotate(q[p], p);
      Rotate(k[p], p);
    }
    for (size_t p = 0; p < x.size(); ++p) {
      Add(x[p], Product(block + "attn_output", Attend(q[p], k, v, p)));
      const Row normed = Norm(x[p], block + "ffn_norm.weight");
      Row gate = Product(block + "ffn_gate", normed);
      const Row up = Product(block + "ffn_up", normed);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      Add(x[p], Product(block + "ffn_down", gate));
    }
  }

  static void Add(Row& x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  const GgufFile& file_;
  const ModelConfig& c_;
};

// A model on the f32 path with KV for `blocks` blocks of 16.
struct Loaded {
  explicit Loaded(const TinyModelOptions& options, int32_t blocks = 8)
      : file(*GgufFile::Open(test::WriteTinyModel(dir, options))),
        config(*ReadModelConfig(*file)),
        ops(*kernels::MakeCpuOps({.path = kernels::NumericPath::kF32, .threads = 1})),
        weights(*LoadWeights(*file, config, FloatWeights::kAsInFile, *ops, nullptr)),
        storage(*kv::KvStorage::Create({.layers = config.layers,
                                        .kv_heads = config.kv_heads,
                                        .head_dim = config.head_dim,
                                        .type = ops->kv_type()},
                                       blocks)),
        transformer(config, weights, *ops, /*max_rows=*/64, /*max_logits=*/8) {}

  test::TempDir dir;
  std::unique_ptr<GgufFile> file;
  ModelConfig config;
  std::unique_ptr<kernels::Ops> ops;
  Weights weights;
  std::unique_ptr<kv::KvStorage> storage;
  Transformer transformer;
};

std::vector<int32_t> SomeIds(int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + 5) % test::kTinyVocabulary);
  return ids;
}

class TransformerArchitecture : public ::testing::TestWithParam<TinyModelOptions> {};

TEST_P(TransformerArchitecture, ComputesWhatThePaperSays) {
  Loaded model(GetParam());
  const std::vector<int32_t> ids = SomeIds(40);
  const std::vector<int32_t> blocks = {3, 1, 6};
  const std::vector<kernels::SequenceRows> rows = {{.rows = 40, .blocks = blocks}};
  const std::vector<int32_t> wanted = {0, 39};
  const auto logits = model.transformer.Forward({ids, rows, wanted}, *model.storage);

  const NaiveModel naive(*model.file, model.config);
  const Row first = naive.Logits({ids[0]});
  const Row last = naive.Logits(ids);
  ASSERT_EQ(logits.rows, 2);
  ASSERT_EQ(logits.cols, test::kTinyVocabulary);
  for (int64_t id = 0; id < logits.cols; ++id) {
    ASSERT_NEAR(logits.Row(0)[id], first[id], 2e-4) << "id " << id;
    ASSERT_NEAR(logits.Row(1)[id], last[id], 2e-4) << "id " << id;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TransformerArchitecture,
                         ::testing::Values(TinyModelOptions{.architecture = "llama"},
                                           TinyModelOptions{.architecture = "llama", .tied = false},
                                           TinyModelOptions{.architecture = "qwen2"},
                                           TinyModelOptions{.architecture = "qwen3"}),
                         [](const auto& info) {
                           return info.param.architecture + (info.param.tied ? "" : "_untied");
                         });

TEST(Transformer, SaysWhenTheKvOfALayerIsFinal) {
  Loaded model({.layers = 3});
  const std::vector<int32_t> ids = SomeIds(20);
  const std::vector<int32_t> blocks = {2, 5};
  const std::vector<kernels::SequenceRows> rows = {{.rows = 20, .blocks = blocks}};
  std::vector<std::vector<std::byte>> seen;
  const auto bytes = [&](int32_t layer) {
    std::vector<std::byte> out;
    for (int32_t block : blocks) {
      const auto piece = model.storage->Piece(block, layer);
      out.insert(out.end(), piece.begin(), piece.end());
    }
    return out;
  };
  model.transformer.Forward({ids, rows, {}}, *model.storage, [&](int32_t layer) {
    EXPECT_EQ(static_cast<size_t>(layer), seen.size());
    seen.push_back(bytes(layer));
  });
  ASSERT_EQ(seen.size(), 3u);
  for (int32_t layer = 0; layer < 3; ++layer) EXPECT_EQ(seen[layer], bytes(layer));
  EXPECT_NE(seen[0], seen[1]);
}

TEST(Transformer, WritesOnlyTheBlocksOfItsSequences) {
  Loaded model({});
  const std::vector<int32_t> ids = SomeIds(20);
  const std::vector<int32_t> blocks = {2, 5};
  const std::vector<kernels::SequenceRows> rows = {{.rows = 20, .blocks = blocks}};
  model.transformer.Forward({ids, rows, {}}, *model.storage);
  for (int32_t block : {0, 1, 3, 4, 6, 7}) {
    for (int32_t layer = 0; layer < model.config.layers; ++layer) {
      for (std::byte byte : model.storage->Piece(block, layer)) ASSERT_EQ(byte, std::byte{0});
    }
  }
}

}  // namespace
}  // namespace setu::model
