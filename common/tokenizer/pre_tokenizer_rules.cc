// SPDX-License-Identifier: Apache-2.0
// The names and their patterns as model makers publish them in tokenizer.json; which name stands
// for which is llama.cpp's custom (src/llama-vocab.cpp), whose converter writes the names.
#include <array>

#include "absl/strings/str_cat.h"
#include "common/model/gguf_cursor.h"
#include "common/tokenizer/pre_tokenizer.h"

namespace setu::tokenizer {
namespace {

using Pattern = std::string_view;

constexpr Pattern kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr Pattern kDigit = R"(\p{N})";

constexpr Pattern kGpt2[] = {kGpt2Words};
constexpr Pattern kDigitsThenGpt2[] = {kDigit, kGpt2Words};
constexpr Pattern kLlama3[] = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                               R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kQwen2[] = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                              R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kQwen35[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kTekken[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kGpt4o[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kDeepseek3[] = {
    R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Pattern kDeepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                      R"([一-龥ࠀ-一가-퟿]+)", kDigit};
constexpr Pattern kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Words, R"([0-9][0-9][0-9])"};
constexpr Pattern kDefault[] = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)",
                                R"([0-9][0-9][0-9])"};

constexpr PreTokenizerRules WholeWords(std::string_view name, std::span<const Pattern> patterns) {
  return {.name = name, .patterns = patterns, .whole_words = true, .adds_bos = true};
}

constexpr PreTokenizerRules kRules[] = {
    {"chatglm-bpe", kLlama3},
    {"codeshell", kDigitsThenGpt2},
    {"command-r", kDigitsThenGpt2},
    {"dbrx", kLlama3},
    {"deepseek-coder", kDeepseekCoder},
    {"deepseek-r1-qwen", kQwen2},
    {"deepseek-v3", kDeepseek3},
    {"default", kDefault},
    {"exaone", kDigitsThenGpt2},
    {"exaone4", kGpt2},
    {"falcon", kFalcon},
    WholeWords("falcon3", kLlama3),
    {"glm4", kLlama3},
    {"gpt-2", kGpt2},
    {"gpt-4o", kGpt4o},
    {"jais", kGpt2},
    WholeWords("lfm2", kLlama3),
    WholeWords("llama-bpe", kLlama3),
    WholeWords("llama-v3", kLlama3),
    WholeWords("llama3", kLlama3),
    {"llama4", kGpt4o},
    {"megrez", kQwen2},
    {"mellum", kGpt2},
    {"minerva-7b", kDigitsThenGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"phi-2", kGpt2},
    WholeWords("pixtral", kLlama3),
    {"qwen2", kQwen2},
    {"qwen35", kQwen35},
    {"refact", kDigitsThenGpt2},
    {"smaug-bpe", kLlama3},
    {"smollm", kDigitsThenGpt2},
    {"stablelm2", kQwen2},
    {"starcoder", kDigitsThenGpt2},
    WholeWords("tekken", kTekken),
};

}  // namespace

absl::StatusOr<PreTokenizerRules> FindPreTokenizer(std::string_view name) {
  std::string known;
  for (const PreTokenizerRules& rules : kRules) {
    if (rules.name == name) return rules;
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(rules.name));
  }
  return absl::InvalidArgumentError(absl::StrCat("load failed: tokenizer.ggml.pre is ",
                                                 model::Quoted(name),
                                                 ", an unknown pre-tokenizer; known: ", known));
}

}  // namespace setu::tokenizer
