// SPDX-License-Identifier: Apache-2.0
#include "common/chat/methods.h"

#include <gtest/gtest.h>

#include "tests/common/chat/render.h"

namespace setu::chat {
namespace {

TEST(Methods, BelongToTheirTypes) {
  EXPECT_NE(FindMethod(Value(std::make_shared<const Text>()), "strip"), nullptr);
  EXPECT_EQ(FindMethod(Value(std::make_shared<const Text>()), "items"), nullptr);
  EXPECT_EQ(FindMethod(Value(int64_t{1}), "strip"), nullptr);
}

TEST(Methods, HostObjectsCannotBeReached) {
  for (const char* inside :
       {"''.__class__()", "messages.__class__.__mro__", "''.format('x')", "[].append(1)",
        "{}.update(x=1)", "{}.pop('x')", "range.__globals__.x", "namespace.__init__()"}) {
    EXPECT_FALSE(Error("{{ " + std::string(inside) + " }}").empty()) << inside;
  }
}

TEST(Methods, WrongArgumentsAreErrorsThatNameTheMethod) {
  for (const char* inside : {"'a'.split('')", "'a'.split(1)", "'a'.strip(2)", "'a'.replace('b')",
                             "'a'.startswith()", "'a'.startswith([1])", "'a'.join([1])",
                             "'a'.upper(1)", "'a'.count('')", "{}.get(key='a', x=1)"}) {
    EXPECT_NE(Error("{{ " + std::string(inside) + " }}").find("()'"), std::string::npos) << inside;
  }
}

}  // namespace
}  // namespace setu::chat
