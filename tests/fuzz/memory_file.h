// SPDX-License-Identifier: Apache-2.0
// Bytes as a file that a path names and no disk holds, for what opens files itself.
//
//   const MemoryFile image(bytes);
//   GgufFile::Open(image.path());
#ifndef SETU_TESTS_FUZZ_MEMORY_FILE_H_
#define SETU_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "common/base/check.h"

namespace setu::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    SETU_CHECK(fd_ >= 0, "the system has memory for a file");
    SETU_CHECK(write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
               "a memory file takes all bytes");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

}  // namespace setu::fuzz

#endif  // SETU_TESTS_FUZZ_MEMORY_FILE_H_
