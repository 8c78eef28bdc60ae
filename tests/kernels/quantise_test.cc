// SPDX-License-Identifier: Apache-2.0
// Quantising rows: the bytes of the `gguf` Python package 0.19 where it knows the type
// (data/quantise.txt: type, f32 values, expected bytes, in hex), the size of the error for all.
#include "kernels/quantise.h"

#include <fstream>
#include <limits>
#include <sstream>

#include "tests/kernels/kernels_fixture.h"

namespace setu::kernels {
namespace {

std::vector<std::byte> FromHex(const std::string& hex) {
  std::vector<std::byte> bytes(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

std::vector<std::byte> Quantised(WeightType type, const std::vector<float>& x) {
  std::vector<std::byte> out(RowBytes(type, std::ssize(x)));
  QuantiseRow(type, x.data(), std::ssize(x), out.data());
  return out;
}

std::vector<float> ThereAndBack(WeightType type, const std::vector<float>& x) {
  const std::vector<std::byte> row = Quantised(type, x);
  return Dequantised(*MakeOps(NumericPath::kF32, "portable", 1),
                     {type, 1, std::ssize(x), row.data()});
}

TEST(QuantiseTest, GivesTheBytesOfTheGgufPackage) {
  std::ifstream file("tests/kernels/data/quantise.txt");
  ASSERT_TRUE(file.is_open()) << "run from the root of the source tree";
  int types = 0;
  for (std::string line; std::getline(file, line); ++types) {
    std::istringstream fields(line);
    std::string name, values_hex, expected_hex;
    fields >> name >> values_hex >> expected_hex;
    const std::vector<std::byte> bytes = FromHex(values_hex);
    std::vector<float> x(bytes.size() / sizeof(float));
    std::memcpy(x.data(), bytes.data(), bytes.size());
    for (const WeightType type : kAllTypes) {
      if (name != WeightTypeName(type)) continue;
      EXPECT_EQ(Quantised(type, x), FromHex(expected_hex)) << name;
    }
  }
  EXPECT_EQ(types, 7);
}

// Root of the mean square of the error over that of the values, which are uniform in [-1, 1] here.
TEST(QuantiseTest, TheErrorIsThatOfTheBits) {
  const struct {
    WeightType type;
    double error_max;
  } kCases[] = {{WeightType::kF32, 0},      {WeightType::kF16, 3e-4},   {WeightType::kBF16, 3e-3},
                {WeightType::kQ4_0, 0.076}, {WeightType::kQ4_1, 0.068}, {WeightType::kQ5_0, 0.037},
                {WeightType::kQ5_1, 0.034}, {WeightType::kQ8_0, 0.005}, {WeightType::kQ4_K, 0.069},
                {WeightType::kQ5_K, 0.035}, {WeightType::kQ6_K, 0.019}};
  const std::vector<float> x = Random(3).Floats(4096);
  for (const auto& c : kCases) {
    const std::vector<float> back = ThereAndBack(c.type, x);
    double error = 0, size = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      error += (x[i] - back[i]) * (x[i] - back[i]);
      size += x[i] * x[i];
    }
    EXPECT_LE(std::sqrt(error / size), c.error_max) << WeightTypeName(c.type);
  }
}

TEST(QuantiseTest, KQuantsKeepGroupsOfDifferentSizeApart) {
  for (const WeightType type : {WeightType::kQ4_K, WeightType::kQ5_K, WeightType::kQ6_K}) {
    std::vector<float> x = Random(5).Floats(256);
    for (int i = 0; i < 256; ++i) x[i] *= std::ldexp(1.0f, -(i / 32 % 4));
    const std::vector<float> back = ThereAndBack(type, x);
    for (int i = 0; i < 256; ++i) {
      const float group = std::ldexp(1.0f, -(i / 32 % 4));
      EXPECT_NEAR(back[i], x[i], 0.1f * group) << WeightTypeName(type) << " " << i;
    }
  }
}

TEST(QuantiseTest, ZerosStayZeros) {
  for (const WeightType type : kAllTypes) {
    const std::vector<float> zeros(256, 0.0f);
    EXPECT_EQ(ThereAndBack(type, zeros), zeros) << WeightTypeName(type);
  }
}

TEST(QuantiseTest, NonFiniteValuesSpoilTheirOwnBlockAlone) {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const WeightType type : kAllTypes) {
      std::vector<float> x = Random(7).Floats(768);
      const std::vector<std::byte> right = Quantised(type, x);
      x[300] = wrong;
      std::vector<std::byte> spoilt = Quantised(type, x);
      const int64_t block = BlockBytes(type), at = 300 / BlockValues(type) * block;
      std::copy_n(right.begin() + at, block, spoilt.begin() + at);
      EXPECT_EQ(spoilt, right) << WeightTypeName(type);
    }
  }
}

}  // namespace
}  // namespace setu::kernels
