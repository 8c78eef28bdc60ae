// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back, from a GGUF file's metadata. Immutable: any number of threads.
//
//   SETU_ASSIGN_OR_RETURN(auto tokenizer, Tokenizer::FromGguf(*file));
//   SETU_ASSIGN_OR_RETURN(auto ids, tokenizer->Encode("Hello", {.add_special = true}));
//   // A rendered chat: control tokens come from the template's own text only.
//   const TextRun runs[] = {{"<|im_start|>user\n", true}, {content}, {"<|im_end|>\n", true}};
//   SETU_ASSIGN_OR_RETURN(auto prompt, tokenizer->EncodeRuns(runs, /*add_special=*/false));
//   StreamDecoder decoder(*tokenizer);
//   std::string text = decoder.Push(id);    // whole UTF-8 characters only
#ifndef SETU_COMMON_TOKENIZER_TOKENIZER_H_
#define SETU_COMMON_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/gguf.h"

namespace setu::tokenizer {

using TokenId = int32_t;

struct EncodeOptions {
  bool add_special = true;     // the BOS/EOS that the model declares; never a second BOS
  bool parse_special = false;  // control tokens written in the text become their ids
};

// A stretch of one text and whether control tokens are looked for inside it.
struct TextRun {
  std::string_view text;
  bool parse_special = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // INVALID_ARGUMENT where the metadata is missing or wrong, or names an unknown pre-tokenizer.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromGguf(const model::GgufFile& file);

  // The runs are one text: ordinary tokens may span two runs, as if they had been joined; a control
  // token never does. INVALID_ARGUMENT for invalid UTF-8 and for a byte that the vocabulary lacks;
  // names its offset in the joined text. Time and memory grow as n log n.
  virtual absl::StatusOr<std::vector<TokenId>> EncodeRuns(std::span<const TextRun> runs,
                                                          bool add_special) const = 0;
  // A text of one run.
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              const EncodeOptions& options) const;
  // The bytes an id stands for; control tokens are empty unless `special`. May be part of a
  // character.
  virtual std::string_view Bytes(TokenId id, bool special = false) const = 0;
  // Whole text: gives back what Encode was given, so a space that Encode puts before a text is
  // taken off again; bytes that are no UTF-8 become U+FFFD. Ids outside the vocabulary are a bug.
  virtual std::string Decode(std::span<const TokenId> ids, bool special = false) const = 0;

  virtual int32_t vocabulary() const = 0;
  // Every id that the file declares as an end of generation (eos, eot, eom...), ascending.
  virtual const std::vector<TokenId>& end_ids() const = 0;
  virtual std::string_view bos_text() const = 0;  // empty where there is none
  virtual std::string_view eos_text() const = 0;
  // Digest of all that decides ids.
  virtual uint64_t digest() const = 0;
};

// Decodes a stream of ids that goes on from other text, to whole characters: holds an unfinished
// UTF-8 sequence back and keeps a leading space.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  std::string Push(TokenId id);
  // What is held back, as U+FFFD where it never became a character.
  std::string Flush();
  bool holding() const { return !held_.empty(); }

 private:
  const Tokenizer& tokenizer_;
  std::string held_;  // at most 3 bytes
};

}  // namespace setu::tokenizer

#endif  // SETU_COMMON_TOKENIZER_TOKENIZER_H_
