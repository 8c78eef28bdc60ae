// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/sources.h"
#include "tests/support/temp_dir.h"

namespace setu::config {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class YamlFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<Assignment>> Read(const std::string& text) {
    return ReadYamlFile(folder_.Write("setu.yaml", text));
  }
  std::string Refused(const std::string& text) {
    const auto read = Read(text);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(read.status().message());
  }

  test::TempDir folder_;
  const std::string path_ = folder_.File("setu.yaml");
};

TEST_F(YamlFileTest, ReadsValuesAndLists) {
  const auto read = Read(
      "# the workers\n"
      "decode: [a:1, b:2]\n"
      "prefill:\n  - c:3\n"
      "kv-memory: 4GiB\n"
      "tls: true\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(FieldsAre("decode", "a:1,b:2", path_ + ":2: decode"),
                                 FieldsAre("prefill", "c:3", path_ + ":3: prefill"),
                                 FieldsAre("kv-memory", "4GiB", path_ + ":5: kv-memory"),
                                 FieldsAre("tls", "true", path_ + ":6: tls")));
}

TEST_F(YamlFileTest, AnEmptyFileHasNoOptions) {
  const auto read = Read("# nothing yet\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, IsEmpty());
}

TEST_F(YamlFileTest, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(Refused("a: 1\nb: [1, 2\n"), HasSubstr(path_ + ":"));
  EXPECT_THAT(Refused("a: 1\nb:\n  c: 2\n"),
              HasSubstr(":2: b must be a value or a list of values"));
  EXPECT_THAT(Refused("a: 1\nb:\n"), HasSubstr(":2: b must be a value"));
  EXPECT_THAT(Refused("a: 1\nb: 2\na: 3\n"), HasSubstr(":3: a is given twice"));
  EXPECT_THAT(Refused("[a]: 1\n"), HasSubstr(":1: a key must be an option's name"));
  EXPECT_THAT(Refused("- a\n"), HasSubstr("must be a map"));
  EXPECT_THAT(Refused("a: *missing\n"), HasSubstr(":1: "));
}

TEST_F(YamlFileTest, BoundsWhatItReads) {
  EXPECT_THAT(Refused(std::string((1 << 20) + 1, '#')), HasSubstr("over 1048576 bytes"));
  EXPECT_FALSE(Read(std::string(100'000, '[')).ok());
  EXPECT_THAT(std::string(ReadYamlFile(folder_.File("none")).status().message()),
              HasSubstr("cannot open --config file"));
}

}  // namespace
}  // namespace setu::config
