// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/support/tiny_model.h"

namespace setu::model {
namespace {

using kernels::WeightType;
using ::testing::HasSubstr;

absl::StatusOr<GgufContents> Parse(std::string_view bytes) {
  return ParseGguf(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::string F32(size_t values) { return std::string(values * 4, '\x01'); }

GgufWriter SmallFile() {
  GgufWriter writer;
  writer.Set("general.architecture", "llama").Set("a.count", uint32_t{7});
  writer.Add("first", WeightType::kF32, {8, 2}, F32(16));
  writer.Add("second", WeightType::kQ4_1, {64, 3}, std::string(6 * 20, '\x02'));
  return writer;
}

TEST(GgufParser, VersionTwoIsTheSameLayout) {
  GgufWriter writer = SmallFile();
  writer.version = 2;
  EXPECT_TRUE(Parse(writer.Bytes()).ok());
}

TEST(GgufParser, AlignmentIsTheFilesOwn) {
  GgufWriter writer = SmallFile();
  writer.alignment = 256;
  writer.Set("general.alignment", uint32_t{256});
  const std::string bytes = writer.Bytes();
  const auto contents = Parse(bytes);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->tensors[1].data[0], std::byte{2});
}

struct Hostile {
  const char* name;
  std::function<void(GgufWriter&)> damage;
  const char* error;  // what the message has to hold
};

std::string ArrayPayload(uint32_t type, uint64_t count, std::string elements) {
  return RawBytes(type) + RawBytes(count) + elements;
}

const Hostile kHostile[] = {
    {"magic", [](GgufWriter& w) { w.magic = "GGML"; }, "magic"},
    {"zip", [](GgufWriter& w) { w.magic = "PK\x03\x04"; }, "PyTorch"},
    {"pickle", [](GgufWriter& w) { w.magic = "\x80\x02}q"; }, "pickle"},
    {"version 1", [](GgufWriter& w) { w.version = 1; }, "version: 1"},
    {"version 4", [](GgufWriter& w) { w.version = 4; }, "version: 4"},
    {"big-endian", [](GgufWriter& w) { w.version = 3 << 24; }, "big-endian"},
    {"tensor count", [](GgufWriter& w) { w.tensor_count = 60000; }, "tensor_count: 60000"},
    {"all tensors", [](GgufWriter& w) { w.tensor_count = ~uint64_t{0}; }, "tensor_count"},
    {"metadata count", [](GgufWriter& w) { w.metadata_count = ~uint64_t{0}; }, "metadata_kv_count"},
    {"metadata over the limit", [](GgufWriter& w) { w.metadata_count = 70000; }, "limit 65536"},
    {"key length", [](GgufWriter& w) { w.metadata[0].key = std::string(70000, 'k'); },
     "metadata key 0: length 70000"},
    {"value type", [](GgufWriter& w) { w.SetRaw("a.count", 13, ""); }, "'a.count': value type 13"},
    {"string length", [](GgufWriter& w) { w.SetRaw("s", 8, RawBytes(uint64_t{1} << 40)); },
     "'s': length 1099511627776"},
    {"bool byte", [](GgufWriter& w) { w.SetRaw("b", 7, "\x02"); }, "'b': a bool is 0 or 1"},
    {"same key", [](GgufWriter& w) { w.metadata.push_back(w.metadata[0]); }, "appears twice"},
    {"nested array",
     [](GgufWriter& w) { w.SetRaw("n", 9, ArrayPayload(9, 1, ArrayPayload(4, 0, ""))); },
     "not nested"},
    {"array type", [](GgufWriter& w) { w.SetRaw("n", 9, ArrayPayload(99, 0, "")); },
     "value type 99"},
    {"array length",
     [](GgufWriter& w) { w.SetRaw("n", 9, ArrayPayload(4, uint64_t{1} << 62, "")); },
     "'n': array length"},
    {"array over the file", [](GgufWriter& w) { w.SetRaw("n", 9, ArrayPayload(8, 100000, "")); },
     "'n': array length: 100000 need more"},
    {"array element",
     [](GgufWriter& w) { w.SetRaw("n", 9, ArrayPayload(10, 1, RawBytes(uint64_t{1} << 31))); },
     "'n': element 0 does not fit"},
    {"bool element", [](GgufWriter& w) { w.SetRaw("n", 9, ArrayPayload(7, 1, "\x07")); },
     "a bool is 0 or 1"},
    {"alignment 0", [](GgufWriter& w) { w.Set("general.alignment", uint32_t{0}); }, "alignment"},
    {"alignment 3", [](GgufWriter& w) { w.Set("general.alignment", uint32_t{3}); }, "alignment"},
    {"alignment 4", [](GgufWriter& w) { w.Set("general.alignment", uint32_t{4}); }, "alignment"},
    {"alignment 48", [](GgufWriter& w) { w.Set("general.alignment", uint32_t{48}); }, "alignment"},
    {"alignment text", [](GgufWriter& w) { w.Set("general.alignment", "32"); }, "alignment"},
    {"name length", [](GgufWriter& w) { w.tensors[0].name = std::string(65, 'n'); },
     "tensor name 0: length 65"},
    {"same name", [](GgufWriter& w) { w.tensors[1].name = "first"; }, "'first': the name"},
    {"no dimension", [](GgufWriter& w) { w.tensors[0].shape = {}; }, "0 dimensions"},
    {"five dimensions",
     [](GgufWriter& w) {
       w.tensors[0].shape = {1, 1, 1, 1, 1};
     },
     "5 dimensions"},
    {"dimension 0",
     [](GgufWriter& w) {
       w.tensors[0].shape = {8, 0};
     },
     "dimension 1 is 0"},
    {"product overflows",
     [](GgufWriter& w) {
       w.tensors[0].shape = {uint64_t{1} << 33, uint64_t{1} << 33};
     },
     "dimension 1 is 8589934592"},
    {"product wraps to the true size",
     [](GgufWriter& w) {
       w.tensors[0].shape = {uint64_t{1} << 63, 2, 8};
     },
     "dimension 0"},
    {"unknown type", [](GgufWriter& w) { w.tensors[0].type = 4242; }, "type 4242"},
    {"type without kernels", [](GgufWriter& w) { w.tensors[0].type = 10; }, "10 (Q2_K)"},
    {"part of a block",
     [](GgufWriter& w) {
       w.tensors[1].shape = {48, 3};
     },
     "whole blocks"},
    {"offset not aligned", [](GgufWriter& w) { w.tensors[1].offset = 65; }, "offset 65"},
    {"offset outside", [](GgufWriter& w) { w.tensors[1].offset = uint64_t{1} << 40; }, "outside"},
    {"offset wraps", [](GgufWriter& w) { w.tensors[1].offset = ~uint64_t{31}; }, "outside"},
    {"size outside",
     [](GgufWriter& w) {
       w.tensors[1].shape = {64, 4};
     },
     "outside"},
    {"overlap", [](GgufWriter& w) { w.tensors[1].offset = 32; }, "'second': overlaps 'first'"},
    {"same place", [](GgufWriter& w) { w.tensors[1].offset = 0; }, "overlaps"},
    {"name of control characters",
     [](GgufWriter& w) {
       w.tensors[0].name = "\x1b[2J\n";
       w.tensors[0].type = 99;
     },
     "'\\x1b[2J\\n'"},
};

TEST(GgufParser, HostileFilesAreRefusedByField) {
  for (const Hostile& hostile : kHostile) {
    GgufWriter writer = SmallFile();
    hostile.damage(writer);
    const auto contents = Parse(writer.Bytes());
    ASSERT_FALSE(contents.ok()) << hostile.name;
    EXPECT_EQ(contents.status().code(), absl::StatusCode::kInvalidArgument) << hostile.name;
    EXPECT_THAT(contents.status().message(), HasSubstr(hostile.error)) << hostile.name;
  }
}

TEST(GgufParser, SafetensorsGetsToldWhatToGive) {
  const auto contents = Parse(RawBytes(uint64_t{20}) + "{\"a\":{\"dtype\":\"F32\"}}");
  EXPECT_THAT(contents.status().message(), HasSubstr("safetensors"));
  EXPECT_THAT(contents.status().message(), HasSubstr("give a GGUF file"));
}

TEST(GgufParser, CutAnywhereIsAnError) {
  const std::string whole = SmallFile().Bytes();
  ASSERT_TRUE(Parse(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own, so that a sanitizer sees a read behind the end.
    const std::string cut = whole.substr(0, size);
    EXPECT_FALSE(Parse(cut).ok()) << size;
  }
}

TEST(GgufParser, TinyModelCutAnywhereIsAnError) {
  const GgufWriter writer = test::TinyModel({});
  const std::string whole = writer.Bytes();
  ASSERT_TRUE(Parse(whole).ok());
  for (size_t size = 0; size < whole.size(); size += size < writer.Header().size() ? 1 : 4096) {
    const auto contents = Parse(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(contents.ok()) << size;
  }
}

TEST(GgufParser, FlippedBytesNeverBreakTheParser) {
  const GgufWriter writer = SmallFile();
  const std::string whole = writer.Bytes();
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = whole;
    for (uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      damaged[random() % writer.Header().size()] = static_cast<char>(random());
    }
    const auto contents = Parse(damaged);
    if (!contents.ok()) {
      ++refused;
      continue;
    }
    for (const GgufTensor& tensor : contents->tensors) {  // what was accepted can be read
      EXPECT_GE(reinterpret_cast<const char*>(tensor.data), damaged.data());
      EXPECT_LE(reinterpret_cast<const char*>(tensor.data) + tensor.bytes,
                damaged.data() + damaged.size());
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace setu::model
