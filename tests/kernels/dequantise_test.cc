// SPDX-License-Identifier: Apache-2.0
// Packing and expanding: the values of every weight type, against blocks expanded by the `gguf`
// Python package 0.19 (data/dequantise.txt: type, block bytes, expected f32 bytes, in hex).
#include <fstream>
#include <sstream>

#include "kernels/quantise.h"
#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

std::vector<uint8_t> FromHex(const std::string& hex) {
  std::vector<uint8_t> bytes(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

class DequantiseTest : public testing::TestWithParam<std::string> {};

TEST_P(DequantiseTest, GivesTheBitsOfTheGgufPackage) {
  const auto ops = MakeOps(NumericPath::kF32, GetParam());
  std::ifstream file("tests/kernels/data/dequantise.txt");
  ASSERT_TRUE(file.is_open()) << "run from the root of the source tree";
  int types = 0;
  for (std::string line; std::getline(file, line); ++types) {
    std::istringstream fields(line);
    std::string name, block_hex, expected_hex;
    fields >> name >> block_hex >> expected_hex;
    const std::vector<uint8_t> blocks = FromHex(block_hex), bytes = FromHex(expected_hex);
    std::vector<float> expected(bytes.size() / sizeof(float));
    std::memcpy(expected.data(), bytes.data(), bytes.size());
    for (const WeightType type : kAllTypes) {
      if (name != WeightTypeName(type)) continue;
      const RawMatrix raw = {type, 1, static_cast<int64_t>(expected.size()),
                             reinterpret_cast<const std::byte*>(blocks.data())};
      EXPECT_TRUE(SameBits(Dequantised(*ops, raw), expected)) << name;
    }
  }
  EXPECT_EQ(types, 8);
}

TEST_P(DequantiseTest, EveryIsaAndRowOfATileAgrees) {
  const auto portable = MakeOps(NumericPath::kF32, "portable");
  const auto ops = MakeOps(NumericPath::kF32, GetParam());
  for (const WeightType type : kAllTypes) {
    const TestWeights w = RandomWeights(type, 37, 512, 5);
    const std::vector<float> all = Dequantised(*portable, w.raw());
    EXPECT_TRUE(SameBits(Dequantised(*ops, w.raw()), all)) << WeightTypeName(type);
    // A row packed alone is lane 0 of its own tile.
    RawMatrix row = w.raw();
    row.rows = 1;
    row.data += 36 * RowBytes(type, 512);
    const std::vector<float> last(all.end() - 512, all.end());
    EXPECT_TRUE(SameBits(Dequantised(*ops, row), last)) << WeightTypeName(type);
  }
}

TEST_P(DequantiseTest, FloatsKeepTheirBitsAtOddSizes) {
  const auto ops = MakeOps(NumericPath::kF32, GetParam());
  const TestWeights w = RandomWeights(WeightType::kF32, 3, 45, 6);
  std::vector<float> expected(3 * 45);
  std::memcpy(expected.data(), w.bytes.data(), w.bytes.size());
  EXPECT_TRUE(SameBits(Dequantised(*ops, w.raw()), expected));
}

TEST_P(DequantiseTest, EveryHalfIsItsValue) {
  const auto ops = MakeOps(NumericPath::kF32, GetParam());
  std::vector<uint16_t> halves(65536);
  for (int i = 0; i < 65536; ++i) halves[i] = static_cast<uint16_t>(i);
  const RawMatrix raw = {WeightType::kF16, 1, 65536,
                         reinterpret_cast<const std::byte*>(halves.data())};
  const std::vector<float> values = Dequantised(*ops, raw);
  for (int i = 0; i < 65536; ++i) {
    const int exponent = i >> 10 & 31, mantissa = i & 1023;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(values[i]), mantissa != 0) << i;
      EXPECT_EQ(std::isinf(values[i]), mantissa == 0) << i;
      continue;
    }
    const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                     : std::ldexp(1024.0f + mantissa, exponent - 25);
    EXPECT_EQ(values[i], (i & 0x8000) != 0 ? -size : size) << i;
  }
}

TEST(PackTest, TakesAtMost15PercentMoreThanTheFile) {
  const auto ops = MakeOps(NumericPath::kInt8G32, "portable");
  for (const WeightType type : kAllTypes) {
    const TestWeights w = RandomWeights(type, 64, 512, 1);
    const auto packed = ops->Pack(w.raw());
    EXPECT_LE(packed->bytes(), 1.15 * w.bytes.size()) << WeightTypeName(type);
    EXPECT_EQ(packed->rows(), 64);
    EXPECT_EQ(packed->cols(), 512);
  }
}

// Quantised on the way: as if the file had held the quantised rows.
TEST(PackTest, FloatsBecomeWhatQuantiseRowMakes) {
  const auto ops = MakeOps(NumericPath::kInt8G32, "portable");
  for (const WeightType from : {WeightType::kF32, WeightType::kF16, WeightType::kBF16}) {
    const TestWeights floats = RandomWeights(from, 20, 96, 2);
    const std::vector<float> values = Dequantised(*ops, floats.raw());
    for (const WeightType to : {WeightType::kQ8_0, WeightType::kQ4_0}) {
      TestWeights rows = {to, 20, 96, std::vector<std::byte>(20 * RowBytes(to, 96))};
      for (int64_t r = 0; r < 20; ++r) {
        QuantiseRow(to, &values[r * 96], 96, &rows.bytes[r * RowBytes(to, 96)]);
      }
      const auto packed = ops->PackAs(floats.raw(), to), expected = ops->Pack(rows.raw());
      EXPECT_EQ(packed->bytes(), expected->bytes());
      EXPECT_TRUE(SameBits(Dequantised(*ops, *packed), Dequantised(*ops, *expected)))
          << WeightTypeName(from) << " to " << WeightTypeName(to);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, DequantiseTest, testing::ValuesIn(IsasToTest()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace setu::kernels
