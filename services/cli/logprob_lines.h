// SPDX-License-Identifier: Apache-2.0
// The logprobs of an answer, for people: one token a line, and what else was likely. Pure.
//
//     logprob  token (likeliest)
//      -0.105  " Paris" (" Paris" -0.105, " the" -3.210)
//      -1.250  "."
#ifndef SETU_SERVICES_CLI_LOGPROB_LINES_H_
#define SETU_SERVICES_CLI_LOGPROB_LINES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "setu/v1/inference.pb.h"

namespace setu::cli {

// The ids whose texts the lines need: the tokens themselves and the likeliest beside them.
std::set<uint32_t> IdsOf(const v1::Delta& tokens);

// `texts` gives an id's text. An id that has none of its own (a control token, a part of a
// character, one that is not in `texts`) shows as #id.
std::string LogprobLines(const v1::Delta& tokens, const std::map<uint32_t, std::string>& texts);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_LOGPROB_LINES_H_
