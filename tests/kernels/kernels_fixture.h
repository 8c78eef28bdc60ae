// SPDX-License-Identifier: Apache-2.0
// What the tests of ops share: Ops by path, ISA and threads, seeded data, weights of every type.
#ifndef SETU_TESTS_KERNELS_KERNELS_FIXTURE_H_
#define SETU_TESTS_KERNELS_KERNELS_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/kv_place.h"

namespace setu::kernels {

inline std::unique_ptr<Ops> MakeOps(NumericPath path, const std::string& isa, int threads = 2,
                                    std::optional<KvType> kv_type = std::nullopt) {
  auto ops = MakeCpuOps({.path = path, .kv_type = kv_type, .isa = isa, .threads = threads});
  EXPECT_TRUE(ops.ok()) << ops.status();
  return *std::move(ops);
}

// ISAs that are compared with portable; says which this machine cannot test.
inline std::vector<std::string> IsasToTest() {
  const std::vector<std::string> available = AvailableIsas();
  for (const std::string isa : {"amx", "avx512", "avx2"}) {
    if (std::find(available.begin(), available.end(), isa) == available.end()) {
      std::printf("not testable on this CPU: %s\n", isa.c_str());
    }
  }
  return available;
}

constexpr WeightType kAllTypes[] = {WeightType::kF32,  WeightType::kF16,  WeightType::kBF16,
                                    WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ5_0,
                                    WeightType::kQ5_1, WeightType::kQ8_0, WeightType::kQ4_K,
                                    WeightType::kQ5_K, WeightType::kQ6_K};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(engine_() >> 8) * 0x1p-24f;
  }
  uint8_t Byte() { return static_cast<uint8_t>(engine_() >> 16); }
  std::vector<float> Floats(int64_t count, float size = 1.0f) {
    std::vector<float> values(count);
    for (float& v : values) v = Uniform(-size, size);
    return values;
  }

 private:
  std::mt19937 engine_;
};

// A matrix as a file holds it.
struct TestWeights {
  WeightType type;
  int64_t rows, cols;
  std::vector<std::byte> bytes;
  RawMatrix raw() const { return {type, rows, cols, bytes.data()}; }
};

// Offsets of the f16 scales of a block; a random one would be huge, infinite or NaN.
inline std::vector<int64_t> ScaleOffsets(WeightType type) {
  switch (type) {
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      return {0, 2};
    case WeightType::kQ6_K:
      return {208};
    default:
      return {0};
  }
}

// Random blocks with scales of +-2^-6 .. 2^-4 (as f16 bits), or random floats.
inline TestWeights RandomWeights(WeightType type, int64_t rows, int64_t cols, uint32_t seed) {
  Random random(seed);
  TestWeights w = {type, rows, cols, std::vector<std::byte>(RowBytes(type, cols) * rows)};
  for (std::byte& b : w.bytes) b = std::byte{random.Byte()};
  if (type == WeightType::kF32) {
    const std::vector<float> values = random.Floats(rows * cols);
    std::memcpy(w.bytes.data(), values.data(), w.bytes.size());
    return w;
  }
  const bool plain = type == WeightType::kF16 || type == WeightType::kBF16;
  // Exponents within a small range: 0x2400 is 2^-6 in f16, 0x3c00 2^-7 in bf16.
  const uint16_t low = type == WeightType::kBF16 ? 0x3c00 : 0x2400;
  for (size_t at = 0; at < w.bytes.size(); at += BlockBytes(type)) {
    for (const int64_t offset : plain ? std::vector<int64_t>{0} : ScaleOffsets(type)) {
      uint16_t half = random.Byte() | random.Byte() << 8;
      half = (half & 0x8000) | (low + (half & 0x07ff));
      std::memcpy(&w.bytes[at + offset], &half, 2);
    }
  }
  return w;
}

inline Matrix View(std::vector<float>& data, int64_t rows, int64_t cols) {
  return {data.data(), rows, cols, cols};
}
inline ConstMatrix View(const std::vector<float>& data, int64_t rows, int64_t cols) {
  return {data.data(), rows, cols, cols};
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Puts K and V into their blocks as they are, unturned.
inline void StoreKv(Ops& ops, ConstMatrix k, ConstMatrix v, const SequenceRows& sequence,
                    const KvLayer& kv) {
  std::vector<float> copy(k.data, k.data + k.rows * k.stride);
  const RopeTable no_turn = {nullptr, nullptr, sequence.start + sequence.rows, 0};
  ops.RopeAndStoreKv({nullptr, k.rows, 0, 0}, {copy.data(), k.rows, k.cols, k.stride}, v,
                     {&sequence, 1}, {}, no_turn, RopeKind::kHalves, kv);
}

// All of a matrix as floats, by Embed.
inline std::vector<float> Dequantised(Ops& ops, const PackedMatrix& packed) {
  std::vector<int32_t> ids(packed.rows());
  for (int32_t i = 0; i < packed.rows(); ++i) ids[i] = i;
  std::vector<float> out(packed.rows() * packed.cols());
  ops.Embed(packed, ids, View(out, packed.rows(), packed.cols()));
  return out;
}
inline std::vector<float> Dequantised(Ops& ops, const RawMatrix& raw) {
  return Dequantised(ops, *ops.Pack(raw));
}

}  // namespace setu::kernels

#endif  // SETU_TESTS_KERNELS_KERNELS_FIXTURE_H_
