// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/cpu/kernel_table.h"
#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

std::vector<const KernelTable*> Tables() {
  std::vector<const KernelTable*> tables;
  for (const std::string& isa : IsasToTest()) {
    tables.push_back(isa == "avx512" ? &Avx512Kernels()
                                     : (isa == "avx2" ? &Avx2Kernels() : &PortableKernels()));
  }
  return tables;
}

// Where every operand is 1, the sum of the products is their number.
TEST(Probes, DoTheProductsThatTheyCount) {
  alignas(64) float floats[kProbeVectors * 16];
  alignas(64) int8_t bytes[kProbeVectors * 64];
  std::fill(std::begin(floats), std::end(floats), 1.0f);
  std::fill(std::begin(bytes), std::end(bytes), 1);
  for (const KernelTable* table : Tables()) {
    float sum = 0.0f;
    EXPECT_EQ(static_cast<float>(table->probe_f32(floats, 100, &sum)), sum) << table->isa;
    EXPECT_GE(sum, 100 * 16) << table->isa;
    EXPECT_EQ(static_cast<float>(table->probe_int8(bytes, 100, &sum)), sum) << table->isa;
    EXPECT_GE(sum, 100 * 64) << table->isa;
  }
}

TEST(Probes, ReadEveryWord) {
  Random random(1);
  for (const int64_t bytes : {4, 64, 96, 256, 4096, 4096 + 64 + 32}) {
    std::vector<uint8_t> data(bytes);
    for (uint8_t& byte : data) byte = random.Byte();
    uint32_t expected = 0;
    for (int64_t at = 0; at < bytes; at += 4) {
      uint32_t word;
      std::memcpy(&word, data.data() + at, 4);
      expected += word;
    }
    for (const KernelTable* table : Tables()) {
      EXPECT_EQ(table->sum_words(data.data(), bytes), expected) << table->isa << " " << bytes;
    }
  }
}

// Each matrix once, whatever the threads; and no more of them than were given.
TEST(Probes, OfOpsReadAllMatrices) {
  for (const int threads : {1, 3}) {
    const auto ops = MakeOps(NumericPath::kInt8G32, "auto", threads);
    const TestWeights raw = RandomWeights(WeightType::kQ8_0, 80, 4096, 7);
    const auto a = ops->Pack(raw.raw()), b = ops->Pack(raw.raw());
    const PackedMatrix* both[] = {a.get(), b.get()};
    const uint32_t one = ops->ProbeReads(std::span(both).first(1));
    EXPECT_NE(one, 0u);
    EXPECT_EQ(ops->ProbeReads(both), 2 * one);
  }
}

// Small ones are read together.
TEST(Probes, OfOpsReadEachOfManySmallMatrices) {
  const auto ops = MakeOps(NumericPath::kInt8G32, "auto", 3);
  std::vector<std::unique_ptr<PackedMatrix>> owned;
  std::vector<const PackedMatrix*> matrices;
  uint32_t expected = 0;
  for (int i = 0; i < 200; ++i) {
    owned.push_back(ops->Pack(RandomWeights(WeightType::kQ8_0, 16 * (1 + i % 7), 64, i).raw()));
    matrices.push_back(owned.back().get());
    expected += ops->ProbeReads(std::span(matrices).last(1));
  }
  EXPECT_EQ(ops->ProbeReads(matrices), expected);
}

TEST(Probes, OfOpsMultiplyAsTheWeightsTypeAndThePathDo) {
  const auto ops = MakeOps(NumericPath::kInt8G32, "portable", 2);
  const auto f32_ops = MakeOps(NumericPath::kF32, "portable", 2);
  const auto q8 = ops->Pack(RandomWeights(WeightType::kQ8_0, 16, 32, 1).raw());
  const auto f16 = ops->Pack(RandomWeights(WeightType::kF16, 16, 32, 1).raw());
  const int64_t fma = f32_ops->ProbeProducts(*q8, 10);
  EXPECT_EQ(ops->ProbeProducts(*f16, 10), fma);
  EXPECT_EQ(ops->ProbeProducts(*q8, 10), 4 * fma);
  EXPECT_EQ(ops->ProbeProducts(*q8, 20), 8 * fma);
}

}  // namespace
}  // namespace setu::kernels
