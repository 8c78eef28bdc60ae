// SPDX-License-Identifier: Apache-2.0
#include "common/config/nearest.h"

#include <gtest/gtest.h>

namespace setu::config {
namespace {

const std::vector<std::string> kKnown = {"listen", "chunk-tokens", "decode", "model"};

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(Nearest("chunk-token", kKnown), "chunk-tokens");
  EXPECT_EQ(Nearest("chunktokens", kKnown), "chunk-tokens");
  EXPECT_EQ(Nearest("lisen", kKnown), "listen");
  EXPECT_EQ(Nearest("deocde", kKnown), "decode");
  EXPECT_EQ(Nearest("model", kKnown), "model");
  EXPECT_EQ(Nearest("CHUNK-TOKENS", kKnown), "chunk-tokens");
}

TEST(Nearest, SuggestsNothingForWhatIsFarFromAll) {
  EXPECT_EQ(Nearest("temperature", kKnown), "");
  EXPECT_EQ(Nearest("", kKnown), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'm'), kKnown), "");
}

}  // namespace
}  // namespace setu::config
