// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_writer.h"

#include <gtest/gtest.h>

#include <span>

#include "common/model/gguf_parser.h"

namespace setu::model {
namespace {

using kernels::WeightType;

std::span<const std::byte> View(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(GgufWriter, ReservedTensorsLieWhereOffsetsSay) {
  GgufWriter whole, reserved;
  const std::string first(5 * 4, 'a'), second(34, 'b');
  whole.Set("x", "y").Add("first", WeightType::kF32, {5}, first);
  whole.Add("second", WeightType::kQ8_0, {32}, second);
  reserved.Set("x", "y").Reserve("first", WeightType::kF32, {5});
  reserved.Reserve("second", WeightType::kQ8_0, {32});

  std::string file = reserved.Header();
  EXPECT_EQ(file.size() % reserved.alignment, 0u);
  const size_t data = file.size();
  file.resize(data + reserved.Offsets()[1] + second.size(), '\0');
  file.replace(data + reserved.Offsets()[0], first.size(), first);
  file.replace(data + reserved.Offsets()[1], second.size(), second);
  EXPECT_EQ(file, whole.Bytes());

  const auto contents = ParseGguf(View(file));
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->tensors[1].data[0], std::byte{'b'});
}

TEST(GgufWriter, SettingAKeyAgainReplacesItsValue) {
  GgufWriter writer;
  writer.Set("k", uint32_t{1}).Set("other", true).Set("k", "text").Remove("other");
  const auto contents = ParseGguf(View(writer.Bytes()));
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->metadata.size(), 1u);
  EXPECT_EQ(std::get<std::string>(contents->metadata.at("k")), "text");
}

}  // namespace
}  // namespace setu::model
