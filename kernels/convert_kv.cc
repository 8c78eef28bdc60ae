// SPDX-License-Identifier: Apache-2.0
#include "kernels/convert_kv.h"

#include <cstring>
#include <vector>

#include "kernels/cpu/half.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/kv_place.h"
#include "kernels/tensor.h"

namespace setu::kernels {
namespace {

template <typename T>
T Read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// `scale`: of int8 alone.
float ValueAt(KvType type, const std::byte* at, float scale) {
  switch (type) {
    case KvType::kF32:
      return Read<float>(at);
    case KvType::kF16:
      return HalfToFloat(Read<uint16_t>(at));
    case KvType::kBF16:
      return BfloatToFloat(Read<uint16_t>(at));
    case KvType::kInt8:
      return scale * static_cast<float>(Read<int8_t>(at));
  }
  return 0.0f;
}

}  // namespace

void ConvertKv(const KvShape& shape, KvType from, const std::byte* in, KvType to, std::byte* out) {
  const auto in_value = static_cast<int64_t>(KvTypeBytes(from));
  const auto out_value = static_cast<int64_t>(KvTypeBytes(to));
  const int64_t values = shape.head_dim * shape.block_tokens;
  std::vector<float> x(shape.head_dim);
  for (int64_t head = 0; head < 2 * shape.kv_heads; ++head) {
    const auto place = [&](KvType type, int64_t token) {
      return head < shape.kv_heads ? KeyPlace(type, shape.head_dim, shape.block_tokens, token)
                                   : ValuePlace(type, shape.head_dim, token);
    };
    for (int64_t token = 0; token < shape.block_tokens; ++token) {
      const int64_t scale_at = token * static_cast<int64_t>(sizeof(float));
      const float scale =
          from == KvType::kInt8 ? Read<float>(in + values * in_value + scale_at) : 1.0f;
      const KvPlace source = place(from, token);
      for (int64_t dim = 0; dim < shape.head_dim; ++dim) {
        x[dim] = ValueAt(from, in + IndexOf(source, dim) * in_value, scale);
      }
      PortableKernels().store_kv(x.data(), shape.head_dim, to, place(to, token),
                                 reinterpret_cast<uint8_t*>(out),
                                 reinterpret_cast<float*>(out + values * out_value + scale_at));
    }
    in += KvHeadBytes(from, shape.head_dim, shape.block_tokens);
    out += KvHeadBytes(to, shape.head_dim, shape.block_tokens);
  }
}

}  // namespace setu::kernels
