// SPDX-License-Identifier: Apache-2.0
#include "common/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace setu::tokenizer {
namespace {

std::string PcreMessage(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct PreTokenizer::Matching {
  struct Free {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };

  explicit Matching(size_t text_bytes)
      : context(pcre2_match_context_create(nullptr)), data(pcre2_match_data_create(1, nullptr)) {
    // A run that is taken whole and given back character by character costs a few steps per byte.
    const uint64_t steps = 1000 + 16 * uint64_t{text_bytes};
    pcre2_set_match_limit(
        context.get(),
        static_cast<uint32_t>(std::min(steps, uint64_t{std::numeric_limits<uint32_t>::max()})));
  }

  std::unique_ptr<pcre2_match_context, Free> context;
  std::unique_ptr<pcre2_match_data, Free> data;
};

void PreTokenizer::FreeCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

absl::StatusOr<PreTokenizer> PreTokenizer::Compile(std::span<const std::string_view> patterns) {
  PreTokenizer result;
  for (std::string_view pattern : patterns) {
    // PCRE2's own \s has U+180E too, which Unicode took out of White_Space.
    const std::string source = absl::StrReplaceAll(
        std::string(pattern), {{R"(\s)", R"(\p{White_Space})"}, {R"(\S)", R"(\P{White_Space})"}});
    int error = 0;
    PCRE2_SIZE offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                            PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    if (code == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("pre-tokenizer pattern ", source, ", offset ",
                                                     offset, ": ", PcreMessage(error)));
    }
    // Where this machine has no JIT, the interpreter gives the same words.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    result.codes_.push_back(std::move(code));
  }
  return result;
}

absl::Status PreTokenizer::Split(std::string_view text, Emit emit) const {
  Matching matching(text.size());
  return SplitFrom(0, text, matching, emit);
}

absl::Status PreTokenizer::SplitFrom(size_t level, std::string_view text, Matching& matching,
                                     Emit emit) const {
  if (text.empty()) return absl::OkStatus();
  if (level == codes_.size()) return emit(text);
  size_t done = 0;
  while (done < text.size()) {
    const int found = pcre2_match(codes_[level].get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), done, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                                  matching.data.get(), matching.context.get());
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("text is too intricate for the model's pre-tokenizer: ", PcreMessage(found),
                       "; shorten it"));
    }
    // Copied: the levels below use the same match data.
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(matching.data.get());
    const size_t begin = span[0];
    const size_t end = span[1];
    SETU_RETURN_IF_ERROR(SplitFrom(level + 1, text.substr(done, begin - done), matching, emit));
    SETU_RETURN_IF_ERROR(SplitFrom(level + 1, text.substr(begin, end - begin), matching, emit));
    done = end;
  }
  return SplitFrom(level + 1, text.substr(done), matching, emit);
}

}  // namespace setu::tokenizer
