// SPDX-License-Identifier: Apache-2.0
// The default model against transformers' answers (tests/golden/README.md): the f32 path gives the
// same tokens, and faster paths stay as close to f32 as their roundings let them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/engine/model_runner.h"
#include "tests/support/generate.h"
#include "tests/support/real_model.h"

namespace setu {
namespace {

using engine::ModelRunner;
using kernels::ConstMatrix;
using kernels::KvType;
using kernels::NumericPath;
using nlohmann::json;

constexpr int32_t kRows = 512;
constexpr int64_t kMiB = int64_t{1} << 20;

std::unique_ptr<ModelRunner> Load(const kernels::CpuOptions& cpu) {
  auto runner = ModelRunner::Load({.model_path = test::RealModelPath(),
                                   .cpu = cpu,
                                   .kv_memory_bytes = 256 * kMiB,
                                   .max_rows = kRows,
                                   .max_logits = kRows},
                                  nullptr);
  if (!runner.ok()) {
    ADD_FAILURE() << runner.status() << "; tests/run.sh fetches the model";
    return nullptr;
  }
  return *std::move(runner);
}

json Cases() {
  std::ifstream file("tests/golden/greedy.json");
  return json::parse(file)["cases"];
}

// What is fed for a case: the prompt and all generated ids but the last.
std::vector<int32_t> Fed(const json& one) {
  auto ids = one["prompt_ids"].get<std::vector<int32_t>>();
  const auto generated = one["ids"].get<std::vector<int32_t>>();
  ids.insert(ids.end(), generated.begin(), generated.end() - 1);
  return ids;
}

// One position of one case.
struct Place {
  size_t index;      // of the case
  int32_t position;  // of the id whose successor the logits are for
};

// Feeds every case whole, `kRows` positions of all cases in a step, each an entry of its own so
// that it has logits: bits do not depend on how rows are cut.
template <typename OnStep>
void TeacherForce(const json& cases, std::vector<ModelRunner*> runners, const OnStep& on_step) {
  std::vector<std::vector<int32_t>> fed;
  std::vector<Place> places;
  for (size_t c = 0; c < cases.size(); ++c) {
    fed.push_back(Fed(cases[c]));
    for (int32_t p = 0; p < std::ssize(fed[c]); ++p) places.push_back({c, p});
  }
  std::vector<std::vector<kv::BlockLease>> leases(cases.size());
  for (size_t c = 0; c < cases.size(); ++c) {
    for (ModelRunner* runner : runners) {
      leases[c].push_back(*runner->pool().Take(kv::BlocksFor(std::ssize(fed[c]), 16)));
    }
  }
  for (size_t first = 0; first < places.size(); first += kRows) {
    const auto step =
        std::span(places).subspan(first, std::min<size_t>(kRows, places.size() - first));
    std::vector<ConstMatrix> logits;
    for (size_t r = 0; r < runners.size(); ++r) {
      std::vector<engine::StepEntry> entries;
      for (const Place& place : step) {
        entries.push_back({.ids = std::span(fed[place.index]).subspan(place.position, 1),
                           .start = place.position,
                           .blocks = leases[place.index][r].blocks(),
                           .want_logits = true});
      }
      logits.push_back(runners[r]->Step(entries));
    }
    for (size_t row = 0; row < step.size(); ++row) {
      std::vector<const float*> rows;
      for (const ConstMatrix& m : logits) rows.push_back(m.Row(static_cast<int64_t>(row)));
      on_step(step[row], rows);
    }
  }
}

int32_t ArgMax(const float* logits, int64_t count) {
  return static_cast<int32_t>(std::max_element(logits, logits + count) - logits);
}

// ln sum exp
double LogSum(const float* logits, int64_t count) {
  const double highest = *std::max_element(logits, logits + count);
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - highest);
  return highest + std::log(sum);
}

// How f32 compares with transformers.
struct Golden {
  std::vector<int32_t> parted;     // per case: the first generated index that differs, or -1
  double logprob_error_max = 0.0;  // of top5_logprobs_first8, before a case parts
};

// How a faster path compares with f32.
struct Closeness {
  double kl_sum = 0.0, kl_max = 0.0;
  int64_t positions = 0, same_top = 0;
  double kl_mean() const { return kl_sum / static_cast<double>(positions); }
  double same_top_share() const {
    return static_cast<double>(same_top) / static_cast<double>(positions);
  }
};

void CompareGolden(const json& one, const Place& place, const float* f32, int64_t vocabulary,
                   Golden& out) {
  const auto step = place.position + 1 - static_cast<int32_t>(one["prompt_ids"].size());
  int32_t& parted = out.parted[place.index];
  if (step < 0 || parted >= 0) return;
  if (ArgMax(f32, vocabulary) != one["ids"][step].get<int32_t>()) parted = step;
  if (step >= std::ssize(one["top5_logprobs_first8"])) return;
  const double log_sum = LogSum(f32, vocabulary);
  for (const json& top : one["top5_logprobs_first8"][step]) {
    const double error = f32[top[0].get<int32_t>()] - log_sum - top[1].get<double>();
    out.logprob_error_max = std::max(out.logprob_error_max, std::abs(error));
  }
}

void CompareFast(const float* f32, const float* fast, int64_t vocabulary, Closeness& out) {
  const double p_sum = LogSum(f32, vocabulary), q_sum = LogSum(fast, vocabulary);
  double kl = 0.0;
  for (int64_t id = 0; id < vocabulary; ++id) {
    const double p = f32[id] - p_sum;
    kl += std::exp(p) * (p - (fast[id] - q_sum));
  }
  out.kl_sum += kl;
  out.kl_max = std::max(out.kl_max, kl);
  out.same_top += ArgMax(f32, vocabulary) == ArgMax(fast, vocabulary);
  ++out.positions;
}

class GoldenGreedy : public ::testing::Test {
 protected:
  void Report(const std::string& key, double value) {
    RecordProperty(key, std::to_string(value));
    std::cout << key << " = " << value << "\n";
  }
};

// A path, and how far it may be from f32: mean Kullback-Leibler divergence in nats.
struct FastPath {
  kernels::CpuOptions cpu;
  double kl_mean_max, same_top_min;
};

TEST_F(GoldenGreedy, F32GivesTheirTokensAndFasterPathsStayClose) {
  constexpr double kMost = 0.0032;
  const FastPath fast[] = {
      {{.path = NumericPath::kInt8G32}, kMost, 0.96},
      {{.path = NumericPath::kBf16Tile}, kMost, 0.96},
      {{.path = NumericPath::kInt8G32, .kv_type = KvType::kInt8}, 2 * kMost, 0.95},
  };
  std::vector<std::unique_ptr<ModelRunner>> loaded;
  loaded.push_back(Load({.path = NumericPath::kF32}));
  for (const FastPath& path : fast) loaded.push_back(Load(path.cpu));
  std::vector<ModelRunner*> runners;
  for (const auto& runner : loaded) {
    ASSERT_TRUE(runner != nullptr);
    runners.push_back(runner.get());
  }
  const json cases = Cases();
  const int64_t vocabulary = runners[0]->config().vocabulary;
  Golden golden{.parted = std::vector<int32_t>(cases.size(), -1)};
  std::vector<Closeness> close(std::size(fast));
  TeacherForce(cases, runners, [&](const Place& place, const std::vector<const float*>& rows) {
    CompareGolden(cases[place.index], place, rows[0], vocabulary, golden);
    for (size_t i = 0; i < close.size(); ++i) {
      CompareFast(rows[0], rows[i + 1], vocabulary, close[i]);
    }
  });

  for (size_t c = 0; c < cases.size(); ++c) {
    if (golden.parted[c] < 0) continue;
    const double margin = cases[c]["margins"][golden.parted[c]];
    EXPECT_LT(margin, 1e-2) << "case " << c << " parts at generated index " << golden.parted[c];
  }
  Report("cases_parted", static_cast<double>(std::ranges::count_if(
                             golden.parted, [](int32_t step) { return step >= 0; })));
  Report("logprob_error_max", golden.logprob_error_max);
  EXPECT_LE(golden.logprob_error_max, 1e-3);
  for (size_t i = 0; i < close.size(); ++i) {
    const std::string name = runners[i + 1]->fingerprint().numerics;
    Report("kl_mean of " + name, close[i].kl_mean());
    Report("kl_max of " + name, close[i].kl_max);
    Report("same_top of " + name, close[i].same_top_share());
    EXPECT_LE(close[i].kl_mean(), fast[i].kl_mean_max) << name;
    EXPECT_GE(close[i].same_top_share(), fast[i].same_top_min) << name;
  }
}

// The model's own sizes reach kernels that the tiny model's do not.
TEST_F(GoldenGreedy, OwnSizesKeepTheBitsWhateverChunkBatchAndIsa) {
  const json cases = Cases();
  std::vector<std::vector<int32_t>> prompts;
  for (size_t c : {0, 2, 7, 10, 14}) prompts.push_back(cases[c]["prompt_ids"]);
  for (const NumericPath path : {NumericPath::kInt8G32, NumericPath::kBf16Tile}) {
    std::vector<test::Generated> reference;
    for (const std::string& isa : kernels::AvailableIsas()) {
      if (isa == "portable") continue;  // minutes at this size; the tiny model takes it
      auto runner = ModelRunner::Load({.model_path = test::RealModelPath(),
                                       .cpu = {.path = path, .isa = isa},
                                       .kv_memory_bytes = 64 * kMiB},
                                      nullptr);
      ASSERT_TRUE(runner.ok()) << runner.status();
      if (reference.empty()) reference = test::Generate(**runner, prompts, 6, {});
      EXPECT_TRUE(test::Generate(**runner, prompts, 6, {.chunk = 16, .batch = 5}) == reference)
          << (*runner)->fingerprint().numerics << " on " << isa;
    }
  }
}

}  // namespace
}  // namespace setu
