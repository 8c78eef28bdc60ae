// SPDX-License-Identifier: Apache-2.0
#include "kernels/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/device.h"

namespace setu::kernels {
namespace {

constexpr int kSamples = 200000;
constexpr float kInf = std::numeric_limits<float>::infinity();

double Uniform(std::mt19937_64& engine, double low, double high) {
  return low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53;
}

TEST(MathTest, ExpAtItsEnds) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-kInf), 0.0f);
  EXPECT_EQ(Exp(kInf), kInf);
  EXPECT_EQ(Exp(-1000.0f), 0.0f);
  EXPECT_EQ(Exp(89.0f), kInf);
  EXPECT_TRUE(std::isfinite(Exp(88.72283f)));
  EXPECT_GT(Exp(-87.0f), std::numeric_limits<float>::min());
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(Exp(0.0), 1.0);
  EXPECT_EQ(Exp(-double{kInf}), 0.0);
  EXPECT_EQ(Exp(double{kInf}), double{kInf});
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<double>::quiet_NaN())));
}

TEST(MathTest, ExpIsWithinTwoUlp) {
  std::mt19937_64 engine(1);
  for (int i = 0; i < kSamples; ++i) {
    const float x = static_cast<float>(Uniform(engine, -87.0, 88.7));
    const double exact = std::exp(double{x});
    const float ulp = std::nextafter(static_cast<float>(exact), kInf) - static_cast<float>(exact);
    ASSERT_LE(std::fabs(Exp(x) - exact), 2.0 * ulp) << x;
    const double y = Uniform(engine, -700.0, 700.0), wide = std::exp(y);
    ASSERT_LE(std::fabs(Exp(y) - wide), 2.5 * (std::nextafter(wide, double{kInf}) - wide)) << y;
  }
}

TEST(MathTest, ExpOfARowHasTheBitsOfExpOnEveryIsa) {
  std::mt19937_64 engine(4);
  std::vector<float> x(4099), out(x.size());
  for (float& value : x) value = static_cast<float>(Uniform(engine, -90.0, 90.0));
  x[3] = -kInf, x[18] = kInf, x[37] = std::numeric_limits<float>::quiet_NaN(), x[40] = 1e-40f;
  const auto expect_bits = [&](const std::string& isa, const auto& exp) {
    for (size_t count : {size_t{1}, size_t{16}, size_t{47}, x.size()}) {
      exp(x.data(), static_cast<int64_t>(count), out.data());
      for (size_t i = 0; i < count; ++i) {
        const float one = Exp(x[i]);
        ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(one)) << isa << x[i];
      }
    }
  };
  for (const std::string& isa : AvailableIsas()) {
    expect_bits(isa, isa == "amx"      ? AmxKernels().exp
                     : isa == "avx512" ? Avx512Kernels().exp
                     : isa == "avx2"   ? Avx2Kernels().exp
                                       : PortableKernels().exp);
  }
  expect_bits("best", ExpRow);
}

TEST(MathTest, LogIsWithinTwoUlp) {
  std::mt19937_64 engine(2);
  for (int i = 0; i < kSamples; ++i) {
    const double x = std::ldexp(Uniform(engine, 0.5, 1.0), static_cast<int>(engine() % 200) - 100);
    const double exact = std::log(x), size = std::fabs(exact);
    ASSERT_LE(std::fabs(Log(x) - exact), 2.5 * (std::nextafter(size, double{kInf}) - size)) << x;
  }
  EXPECT_EQ(Log(1.0), 0.0);
  EXPECT_EQ(Log(0.0), -double{kInf});
}

TEST(MathTest, SinAndCosAreNearExact) {
  std::mt19937_64 engine(3);
  for (int i = 0; i < kSamples; ++i) {
    const double x = Uniform(engine, -1.0, 1.0) * std::ldexp(1.0, static_cast<int>(engine() % 31));
    ASSERT_NEAR(Sin(x), std::sin(x), 4e-16) << x;
    ASSERT_NEAR(Cos(x), std::cos(x), 4e-16) << x;
  }
  EXPECT_EQ(Sin(0.0), 0.0);
  EXPECT_EQ(Cos(0.0), 1.0);
}

TEST(MathTest, PowIsNearExact) {
  std::mt19937_64 engine(4);
  for (int i = 0; i < kSamples; ++i) {
    const double base = Uniform(engine, 0.5, 1e6), exponent = Uniform(engine, -3.0, 3.0);
    const double exact = std::pow(base, exponent);
    const double bound = 4e-16 * (1.0 + std::fabs(exponent * std::log(base)));
    ASSERT_LE(std::fabs(Pow(base, exponent) / exact - 1.0), bound) << base << "^" << exponent;
  }
}

}  // namespace
}  // namespace setu::kernels
