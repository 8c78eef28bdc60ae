// SPDX-License-Identifier: Apache-2.0
#include "common/base/mapped_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace setu {
namespace {

// What a load does when somebody writes a shorter model over the one that is read.
[[noreturn]] void ReadACutFile() {
  EndOnUnreadablePages();
  const int file = memfd_create("model", MFD_CLOEXEC);
  const long page = sysconf(_SC_PAGESIZE);
  if (file < 0 || ftruncate(file, 2 * page) != 0) std::exit(2);
  void* mapped = mmap(nullptr, 2 * page, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED || ftruncate(file, page) != 0) std::exit(3);
  const volatile char* bytes = static_cast<const char*>(mapped);
  std::exit(bytes[0] + bytes[page]);
}

[[noreturn]] void RaiseBusError() {
  EndOnUnreadablePages();
  std::raise(SIGBUS);  // no page: sent again by what follows
  std::raise(SIGBUS);
  std::exit(0);
}

TEST(MappedPagesDeathTest, ACutFileIsALineAndNoCore) {
  EXPECT_EXIT(ReadACutFile(), ::testing::ExitedWithCode(1), "load failed: .* was cut while");
}

TEST(MappedPagesDeathTest, AnotherBusErrorIsNotHidden) {
  EXPECT_EXIT(RaiseBusError(), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace setu
