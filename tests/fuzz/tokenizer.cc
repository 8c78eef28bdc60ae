// SPDX-License-Identifier: Apache-2.0
// Tokenizer metadata is refused by name, or makes a tokenizer that gives a text back. An input is
// lines, each a letter and a value, written into a model file's metadata:
//
//   M gpt2      model            P smollm   pre-tokenizer     m a b    merge
//   t 1text     token, type 1    s 0.5      score             x text   a text to encode
//   b e o k     ids of bos, eos, eot, eom   B E S   add_bos, add_eos, add_space_prefix: 0 or 1
#include "common/tokenizer/tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/model/gguf.h"
#include "common/model/gguf_writer.h"
#include "common/tokenizer/vocabulary.h"
#include "tests/fuzz/memory_file.h"

namespace setu::tokenizer {
namespace {

constexpr std::string_view kSpmSpace = "\xE2\x96\x81";  // a space, to SentencePiece

struct Lists {
  std::string model;
  std::vector<std::string> tokens, merges, texts;
  std::vector<int32_t> types;
  std::vector<float> scores;
};

void ReadLine(absl::string_view line, model::GgufWriter& file, Lists& lists) {
  if (line.size() < 2) return;
  const std::string value(line.substr(2));
  const auto id = [&](const char* key) {
    uint32_t number = 0;
    if (absl::SimpleAtoi(value, &number)) file.Set(key, number);
  };
  const auto flag = [&](const char* key) { file.Set(key, value == "1"); };
  float score = 0;
  switch (line[0]) {
    case 'M':
      lists.model = value;
      file.Set("tokenizer.ggml.model", value);
      return;
    case 'P':
      file.Set("tokenizer.ggml.pre", value);
      return;
    case 't':
      lists.types.push_back(value.empty() ? 1 : value[0] - '0');
      lists.tokens.push_back(value.empty() ? "" : value.substr(1));
      return;
    case 's':
      if (absl::SimpleAtof(value, &score)) lists.scores.push_back(score);
      return;
    case 'm':
      lists.merges.push_back(value);
      return;
    case 'x':
      lists.texts.push_back(value);
      return;
    case 'b':
      return id("tokenizer.ggml.bos_token_id");
    case 'e':
      return id("tokenizer.ggml.eos_token_id");
    case 'o':
      return id("tokenizer.ggml.eot_token_id");
    case 'k':
      return id("tokenizer.ggml.eom_token_id");
    case 'B':
      return flag("tokenizer.ggml.add_bos_token");
    case 'E':
      return flag("tokenizer.ggml.add_eos_token");
    case 'S':
      return flag("tokenizer.ggml.add_space_prefix");
  }
}

// The last scores are 0 where an input gives fewer than tokens, so that most inputs get further.
Lists ReadInput(std::string_view input, model::GgufWriter& file) {
  Lists lists;
  for (absl::string_view line : absl::StrSplit(absl::string_view(input.data(), input.size()), '\n'))
    ReadLine(line, file, lists);
  lists.scores.resize(std::max(lists.scores.size(), lists.tokens.size()));
  file.Set("tokenizer.ggml.tokens", lists.tokens).Set("tokenizer.ggml.token_type", lists.types);
  file.Set("tokenizer.ggml.scores", lists.scores).Set("tokenizer.ggml.merges", lists.merges);
  return lists;
}

void CheckText(const Tokenizer& tokenizer, const std::string& text, bool comes_back) {
  const auto ids = tokenizer.Encode(text, {.add_special = false, .parse_special = false});
  if (!ids.ok()) {
    SETU_CHECK(ids.status().code() == absl::StatusCode::kInvalidArgument, "a text is refused so");
    return;
  }
  for (TokenId id : *ids) {
    SETU_CHECK(id >= 0 && id < tokenizer.vocabulary(), "ids are of the vocabulary");
    SETU_CHECK(!std::binary_search(tokenizer.end_ids().begin(), tokenizer.end_ids().end(), id),
               "plain text never becomes an end");
  }
  if (comes_back) SETU_CHECK(tokenizer.Decode(*ids) == text, "what was encoded is given back");
  size_t half = text.size() / 2;
  while (half > 0 && (text[half] & 0xC0) == 0x80) --half;  // to where a character begins
  const TextRun runs[] = {{.text = std::string_view(text).substr(0, half)},
                          {.text = std::string_view(text).substr(half)}};
  const auto joined = tokenizer.EncodeRuns(runs, /*add_special=*/false);
  SETU_CHECK(joined.ok() && *joined == *ids, "runs are one text");
  const auto special = tokenizer.Encode(text, {.add_special = true, .parse_special = true});
  if (special.ok()) tokenizer.Decode(*special, /*special=*/true);
}

void CheckTokenizer(std::string_view input) {
  model::GgufWriter writer;
  const Lists lists = ReadInput(input, writer);
  const fuzz::MemoryFile image(writer.Bytes());
  const auto file = model::GgufFile::Open(image.path());
  SETU_CHECK(file.ok(), "metadata that was written can be read");
  const auto tokenizer = Tokenizer::FromGguf(**file);
  if (!tokenizer.ok()) {
    SETU_CHECK(tokenizer.status().code() == absl::StatusCode::kInvalidArgument,
               "wrong metadata is INVALID_ARGUMENT");
    const absl::string_view message = tokenizer.status().message();
    SETU_CHECK(message.substr(0, 13) == "load failed: ", "an error says what failed");
    SETU_CHECK(message.size() < 1024, "an error is short");
    SETU_CHECK(std::ranges::none_of(message, absl::ascii_iscntrl), "an error controls no terminal");
    return;
  }
  const std::vector<TokenId>& ends = (*tokenizer)->end_ids();
  SETU_CHECK(std::is_sorted(ends.begin(), ends.end()), "end ids ascend");
  for (TokenId id : ends) SETU_CHECK(id >= 0 && id < (*tokenizer)->vocabulary(), "ends are tokens");
  // SentencePiece's way writes spaces anew behind each user-defined token, and has a sign for them.
  const bool spm = lists.model == "llama";
  const bool added = std::ranges::count(lists.types, static_cast<int32_t>(TokenType::kUserDefined));
  for (const std::string& text : lists.texts) {
    CheckText(**tokenizer, text, !spm || (!added && text.find(kSpmSpace) == std::string::npos));
  }
}

}  // namespace
}  // namespace setu::tokenizer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setu::tokenizer::CheckTokenizer({reinterpret_cast<const char*>(data), size});
  return 0;
}
