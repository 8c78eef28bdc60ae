// SPDX-License-Identifier: Apache-2.0
// Where the default model lies that tests/run.sh fetches.
#ifndef SETU_TESTS_SUPPORT_REAL_MODEL_H_
#define SETU_TESTS_SUPPORT_REAL_MODEL_H_

#include <cstdlib>
#include <string>

namespace setu::test {

// $SETU_TEST_MODEL, else the file in the cache folder. Opening it says so where it is missing.
inline std::string RealModelPath() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string path = variable("SETU_TEST_MODEL"); !path.empty()) return path;
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = variable("HOME") + "/.cache";
  return cache + "/setu/models/SmolLM2-135M-Instruct-Q4_1.gguf";
}

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_REAL_MODEL_H_
