// SPDX-License-Identifier: Apache-2.0
// A stream of tokens decoded one by one is the text of all their bytes at once: valid UTF-8, with
// U+FFFD for each maximal subpart of what is none (the Unicode standard, section 3.9).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/tokenizer/tokenizer.h"
#include "tests/fuzz/input.h"
#include "tests/services/router/byte_tokenizer.h"

namespace setu::tokenizer {
namespace {

constexpr size_t kMostPieces = 512;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsCharacter(std::string_view bytes) {
  return !bytes.empty() && ValidUtf8Prefix(bytes) == bytes.size();
}

// By trial: whether some bytes behind `bytes` make one character of them.
bool MayBecomeCharacter(const std::string& bytes) {
  if (bytes.size() >= 4) return false;
  for (const char next : {'\x80', '\x90', '\xA0'}) {
    if (IsCharacter(bytes + next) || MayBecomeCharacter(bytes + next)) return true;
  }
  return false;
}

bool EndsInsideACharacter(const std::string& bytes) {
  for (size_t last = 1; last <= std::min<size_t>(3, bytes.size()); ++last) {
    if (MayBecomeCharacter(bytes.substr(bytes.size() - last))) return true;
  }
  return false;
}

std::string Expected(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    size_t part = 1;
    while (part < bytes.size() && !IsCharacter(bytes.substr(0, part)) &&
           MayBecomeCharacter(std::string(bytes.substr(0, part))) &&
           (IsCharacter(bytes.substr(0, part + 1)) ||
            MayBecomeCharacter(std::string(bytes.substr(0, part + 1))))) {
      ++part;
    }
    text += IsCharacter(bytes.substr(0, part)) ? bytes.substr(0, part) : kReplacement;
    bytes.remove_prefix(part);
  }
  return text;
}

void CheckStream(fuzz::Input input) {
  std::vector<std::string> pieces;
  while (!input.empty() && pieces.size() < kMostPieces) {
    pieces.emplace_back(input.Text(input.Below(6)));
  }
  const router::ByteTokenizer tokenizer(/*adds_begin=*/false, pieces);
  const TokenId first = router::ByteTokenizer::kMessageEnd + 1;
  StreamDecoder decoder(tokenizer);
  std::string bytes, text;  // since the decoder held nothing back
  const auto check = [&] {
    SETU_CHECK(text == Expected(bytes), "parts are the whole");
    bytes.clear();
    text.clear();
  };
  for (size_t id = 0; id < pieces.size(); ++id) {
    bytes += pieces[id];
    const std::string out = decoder.Push(first + static_cast<TokenId>(id));
    SETU_CHECK(ValidUtf8Prefix(out) == out.size(), "each part is whole characters");
    text += out;
    SETU_CHECK(decoder.holding() == EndsInsideACharacter(bytes),
               "what is held back is a character that may still come whole");
    if (!decoder.holding()) check();
  }
  SETU_CHECK(!decoder.holding() || Expected(bytes) == text + std::string(kReplacement),
             "only an open character is held back");
  text += decoder.Flush();
  check();
  SETU_CHECK(decoder.Flush().empty() && !decoder.holding(), "what is flushed is gone");
}

}  // namespace
}  // namespace setu::tokenizer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setu::tokenizer::CheckStream({data, size});
  return 0;
}
