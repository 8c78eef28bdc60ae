// SPDX-License-Identifier: Apache-2.0
// What is in a model file, as text for people: sizes, types, special tokens. Names out of the file
// are escaped, so that it can be shown on a terminal whatever it holds.
//
//   SETU_ASSIGN_OR_RETURN(auto file, GgufFile::Open(path));
//   std::fputs(Inspect(*file).c_str(), stdout);
#ifndef SETU_COMMON_MODEL_INSPECT_H_
#define SETU_COMMON_MODEL_INSPECT_H_

#include <string>

#include "common/model/gguf.h"

namespace setu::model {

// A file whose config cannot be used is shown too, with what is wrong with it.
std::string Inspect(const GgufFile& file);

}  // namespace setu::model

#endif  // SETU_COMMON_MODEL_INSPECT_H_
