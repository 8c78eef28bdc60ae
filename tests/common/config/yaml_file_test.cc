// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
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
  EXPECT_THAT(*read,
              ElementsAre(FieldsAre("decode", ElementsAre("a:1", "b:2"), path_ + ":2: decode"),
                          FieldsAre("prefill", ElementsAre("c:3"), path_ + ":3: prefill"),
                          FieldsAre("kv-memory", ElementsAre("4GiB"), path_ + ":5: kv-memory"),
                          FieldsAre("tls", ElementsAre("true"), path_ + ":6: tls")));
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
  EXPECT_THAT(Refused("[a]: 1\n"), HasSubstr(":1: a key must be a name"));
  EXPECT_THAT(Refused("- a\n"), HasSubstr("must be a map"));
  EXPECT_THAT(Refused("a: *missing\n"), HasSubstr(":1: "));
}

TEST_F(YamlFileTest, NothingInTheFileIsPassedOver) {
  EXPECT_THAT(Refused("a: 1\n---\nb: 2\n"), HasSubstr(path_ + ":2: a second document begins"));
  EXPECT_THAT(Refused("a: 1\n...\nb: 2\n"), HasSubstr("a second document begins"));
  EXPECT_THAT(Refused("---\n---\na: 1\n"), HasSubstr("a second document begins"));
  EXPECT_THAT(Refused("a: 1\n]\n"), HasSubstr(path_ + ":2: "));
  EXPECT_THAT(Refused("a: !!int 1\n"), HasSubstr(":1: tags (tag:yaml.org,2002:int) are not"));
  EXPECT_THAT(Refused("a: &x 1\n"), HasSubstr(":1: anchors (&name) are not allowed"));
  EXPECT_THAT(Refused("&x a: 1\n"), HasSubstr(":1: anchors (&name) are not allowed"));
  EXPECT_THAT(Refused("&x {a: 1}\n"), HasSubstr(":1: anchors (&name) are not allowed"));
  EXPECT_THAT(Refused("&x\n"), HasSubstr(":1: anchors (&name) are not allowed"));
  EXPECT_THAT(Refused("a: 1\n? [b]\n: 2\n"), HasSubstr(":2: a key must be a name"));
  EXPECT_THAT(Refused("a: 1\n? {b: 1}\n: 2\n"), HasSubstr(":2: a key must be a name"));
  EXPECT_THAT(Refused("a: 1\n~: 2\n"), HasSubstr(":2: a key must be a name"));
  EXPECT_THAT(Refused("a: [1, [2]]\n"), HasSubstr(":1: a must be a value or a list of values"));
  EXPECT_THAT(Refused("a: [1, ~]\n"), HasSubstr(":1: a must be a value or a list of values"));
  EXPECT_THAT(Refused("just a text\n"), HasSubstr(":1: the file must be a map"));
}

TEST_F(YamlFileTest, WhatBeginsNoValueIsRefusedAtOnce) {
  for (const char* start : {",", "]", "}", ": ]", "a: b\n...\n,"}) {
    EXPECT_THAT(Refused(absl::StrCat(start, "a: 1\n")), HasSubstr(path_ + ":")) << start;
  }
}

TEST_F(YamlFileTest, ADocumentMayBeMarkedOffAndAValueQuoted) {
  const auto read = Read("\xEF\xBB\xBF%YAML 1.2\n---\na: \"1\"\nb: '~'\n...\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(FieldsAre("a", ElementsAre("1"), path_ + ":3: a"),
                                 FieldsAre("b", ElementsAre("~"), path_ + ":4: b")));
}

// Each alias repeats the one before: 30 lines would be a billion values.
TEST_F(YamlFileTest, AliasesExpandToNothing) {
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [*a", i - 1, ", *a", i - 1, "]\n");
  }
  EXPECT_THAT(Refused(bomb), HasSubstr(":1: anchors (&name) are not allowed"));
}

TEST_F(YamlFileTest, BytesThatAreNoTextAreRefused) {
  for (const std::string& bytes :
       {std::string("\0\0\0", 3), std::string("a: 1\n\0b: 2\n", 11), std::string("a: \xFF\n"),
        std::string("\x7F"
                    "ELF"),
        std::string("a: \x1B[0m\n"),
        std::string("\xFF\xFE"
                    "a\0",
                    4)}) {
    EXPECT_THAT(Refused(bytes), HasSubstr("is no UTF-8 text; it must be a YAML file"));
  }
  EXPECT_THAT(Refused(std::string("a: 1\n\0b: 2\n", 11)), HasSubstr(path_ + ": byte 5 "));
}

TEST_F(YamlFileTest, WhatIsNoFileIsRefused) {
  const auto refused = [&](const std::string& path) {
    const auto read = ReadYamlFile(path);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << path;
    return std::string(read.status().message());
  };
  EXPECT_EQ(refused(folder_.path()),
            "cannot read --config file " + folder_.path() + ": it is a directory");
  EXPECT_THAT(refused(folder_.File("none")), HasSubstr("No such file or directory"));
  EXPECT_THAT(refused("/dev/zero"), HasSubstr("/dev/zero: it is no regular file"));
  const std::string pipe = folder_.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refused(pipe), HasSubstr("it is no regular file")) << "nobody writes into it";
  const std::string loop = folder_.File("loop");
  ASSERT_EQ(symlink(loop.c_str(), loop.c_str()), 0);
  EXPECT_THAT(refused(loop), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(YamlFileTest, BoundsWhatItReads) {
  EXPECT_THAT(Refused(std::string((64 << 10) + 1, '#')),
              HasSubstr(path_ + ": it has over 65536 bytes, the most allowed"));
  EXPECT_TRUE(Read(std::string(64 << 10, '#')).ok());
  for (const char* open :
       {"[", "{", "- ", "? ", "{a: ", "a: [", "\"", "|\n ", "&a ", "!a ", "<<: "}) {
    std::string deep;
    while (deep.size() < 60'000) deep += open;
    EXPECT_FALSE(Read(deep).ok()) << open;
  }
}

}  // namespace
}  // namespace setu::config
