// SPDX-License-Identifier: Apache-2.0
// A property that holds for every seed of the corpus gguf, and not for mutations: the driver has to
// notice.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  SETU_CHECK(size >= 4 && std::memcmp(data, "GGUF", 4) == 0, "an input is a GGUF file");
  return 0;
}
