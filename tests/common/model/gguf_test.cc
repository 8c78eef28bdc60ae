// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model/gguf_writer.h"
#include "tests/support/temp_dir.h"

namespace setu::model {
namespace {

using kernels::WeightType;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Gguf, ReadsEveryScalarAndArrayType) {
  GgufWriter writer;
  writer.Set("u8", uint8_t{200}).Set("i32", int32_t{-5}).Set("u32", uint32_t{5});
  writer.Set("i64", int64_t{-1}).Set("u64", ~uint64_t{0}).Set("f32", 1.5f).Set("f64", 2.5);
  writer.Set("bool", true).Set("text", "naïve").Set("small", int64_t{9});
  writer.Set("texts", std::vector<std::string>{"a", "", "b"});
  writer.Set("floats", std::vector<float>{0.5f, -2});
  writer.Set("ints", std::vector<int32_t>{-1, 3});
  writer.Set("unsigned", std::vector<uint32_t>{1, 3});
  writer.SetRaw("doubles", 9, RawBytes(uint32_t{12}) + RawBytes(uint64_t{1}) + RawBytes(0.25));
  writer.SetRaw("bools", 9, RawBytes(uint32_t{7}) + RawBytes(uint64_t{2}) + "\x01" + '\0');
  TempDir dir;
  auto file = GgufFile::Open(dir.Write("m.gguf", writer.Bytes()));
  ASSERT_TRUE(file.ok()) << file.status();
  const GgufFile& f = **file;
  EXPECT_EQ(f.Uint32("u8").value(), 200u);
  EXPECT_EQ(f.Uint32("small").value(), 9u);
  EXPECT_EQ(std::get<int64_t>(f.metadata().at("i32")), -5);
  EXPECT_EQ(std::get<uint64_t>(f.metadata().at("u64")), ~uint64_t{0});
  EXPECT_EQ(f.Float("f32").value(), 1.5f);
  EXPECT_EQ(f.Float("f64").value(), 2.5f);
  EXPECT_TRUE(f.Bool("bool").value());
  EXPECT_EQ(f.String("text").value(), "naïve");
  EXPECT_THAT(**f.StringArray("texts"), ElementsAre("a", "", "b"));
  EXPECT_THAT(**f.FloatArray("floats"), ElementsAre(0.5f, -2));
  EXPECT_THAT(**f.FloatArray("doubles"), ElementsAre(0.25f));
  EXPECT_THAT(**f.Int32Array("ints"), ElementsAre(-1, 3));
  EXPECT_THAT(**f.Int32Array("unsigned"), ElementsAre(1, 3));
  EXPECT_THAT(**f.Int32Array("bools"), ElementsAre(1, 0));
  EXPECT_EQ(f.Uint32("none").status().code(), absl::StatusCode::kNotFound);
  for (const char* wrong : {"i32", "u64", "f32", "text", "ints"}) {
    EXPECT_EQ(f.Uint32(wrong).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(f.Uint32(wrong).status().message(), HasSubstr(wrong));
  }
}

TEST(Gguf, TensorsLieWhereTheFileSays) {
  GgufWriter writer;
  writer.Add("first", WeightType::kF32, {8, 2}, std::string(64, '\x01'));
  writer.Add("second", WeightType::kQ4_1, {64, 3}, std::string(6 * 20, '\x02'));
  TempDir dir;
  auto file = GgufFile::Open(dir.Write("m.gguf", writer.Bytes()));
  ASSERT_TRUE(file.ok()) << file.status();
  auto second = (*file)->Tensor("second");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->cols(), 64);
  EXPECT_EQ(second->rows(), 3);
  EXPECT_EQ(second->type, WeightType::kQ4_1);
  ASSERT_EQ(second->bytes, 120);
  for (int64_t i = 0; i < second->bytes; ++i) ASSERT_EQ(second->data[i], std::byte{2});
  (*file)->Release(*second);
  EXPECT_EQ(second->data[0], std::byte{2});  // read again from the file
  EXPECT_EQ((*file)->Tensor("third").status().code(), absl::StatusCode::kNotFound);
}

TEST(Gguf, OpenNamesThePathAndWhatIsWrong) {
  TempDir dir;
  const std::string missing = dir.File("missing.gguf");
  EXPECT_EQ(GgufFile::Open(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(GgufFile::Open(missing).status().message(), HasSubstr(missing));
  EXPECT_THAT(GgufFile::Open(dir.path()).status().message(), HasSubstr("not a regular file"));
  EXPECT_THAT(GgufFile::Open(dir.Write("empty.gguf", "")).status().message(),
              HasSubstr("is empty"));
  const std::string wrong = dir.Write("model.bin", "PK\x03\x04 and more");
  EXPECT_THAT(GgufFile::Open(wrong).status().message(), HasSubstr("load failed: " + wrong));
}

}  // namespace
}  // namespace setu::model
