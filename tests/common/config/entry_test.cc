// SPDX-License-Identifier: Apache-2.0
#include "common/config/entry.h"

#include <gtest/gtest.h>

#include "common/base/utf8.h"

namespace setu::config {
namespace {

std::string Refused(Entry& entry, const std::string& text) {
  return std::string(entry.Set(text, "--" + entry.name()).message());
}

TEST(Entry, NamesPlaceValueAndWhatIsAllowed) {
  int32_t tokens = 512;
  Entry entry("chunk-tokens", NumberValue(&tokens), "tokens of one step");
  entry.Range(16, 8192);
  EXPECT_EQ(Refused(entry, "4"), "--chunk-tokens is '4'; it must be 16 to 8192");
  EXPECT_EQ(Refused(entry, "x"),
            "--chunk-tokens is 'x'; it must be a whole number of at most 2147483647");
  EXPECT_EQ(Refused(entry, "16"), "");
  EXPECT_EQ(Refused(entry, "8192"), "");
  EXPECT_EQ(tokens, 8192);
}

TEST(Entry, WritesBoundsInTheOptionsOwnUnit) {
  Duration grace = std::chrono::seconds(60);
  Entry time("drain-grace", DurationValue(&grace), "how long SIGTERM waits");
  time.Range(0.5, 600);
  EXPECT_EQ(Refused(time, "1h"), "--drain-grace is '1h'; it must be 500ms to 10m");
  int32_t tokens = 1;
  Entry count("max-tokens", NumberValue(&tokens), "at most so many");
  count.Range(1, 1 << 20);
  EXPECT_EQ(Refused(count, "0"), "--max-tokens is '0'; it must be 1 to 1048576");
  int64_t memory = 0;
  Entry bytes("kv-memory", BytesValue(&memory), "memory of the KV pool");
  bytes.Range(1 << 20, std::numeric_limits<double>::infinity());
  EXPECT_EQ(Refused(bytes, "4KiB"), "--kv-memory is '4KiB'; it must be at least 1MiB");
}

TEST(Entry, TakesOneOfAFewWords) {
  std::string path = "f32";
  Entry entry("numerics", TextValue(&path), "numeric path");
  entry.OneOf({"f32", "int8-g32"});
  EXPECT_EQ(Refused(entry, "fp32"), "--numerics is 'fp32'; it must be one of f32, int8-g32");
  EXPECT_EQ(path, "f32");
  EXPECT_EQ(Refused(entry, "int8-g32"), "");
}

TEST(Entry, IsMissingWhereRequiredAndNotSet) {
  std::string path;
  Entry entry("model", TextValue(&path), "GGUF file");
  EXPECT_FALSE(entry.missing());
  entry.Required();
  EXPECT_TRUE(entry.missing());
  EXPECT_EQ(Refused(entry, ""), "--model is ''; it must not be empty");
  EXPECT_TRUE(entry.missing());
  EXPECT_EQ(Refused(entry, "m.gguf"), "");
  EXPECT_FALSE(entry.missing());
}

TEST(Entry, DescribesItself) {
  int32_t tokens = 512;
  Entry entry("chunk-tokens", NumberValue(&tokens), "tokens of one step");
  EXPECT_EQ(entry.Variable(), "SETU_CHUNK_TOKENS");
  EXPECT_EQ(entry.Description(), "tokens of one step (default 512)");
  entry.Range(16, 8192);
  EXPECT_EQ(entry.Description(), "tokens of one step; 16 to 8192 (default 512)");
  std::string path;
  Entry required("model", TextValue(&path), "GGUF file");
  required.Required();
  EXPECT_EQ(required.Description(), "GGUF file (required)");
}

TEST(Entry, AHugeValueIsToldInShort) {
  int32_t tokens = 512;
  Entry entry("chunk-tokens", NumberValue(&tokens), "tokens of one step");
  EXPECT_LT(Refused(entry, std::string(100'000, '9')).size(), 400u);
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "€";
  const std::string refused = Refused(entry, euros);
  EXPECT_EQ(ValidUtf8Prefix(refused), refused.size()) << "cut between characters";
}

}  // namespace
}  // namespace setu::config
