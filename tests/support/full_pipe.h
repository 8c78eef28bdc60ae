// SPDX-License-Identifier: Apache-2.0
// A pipe that is full, in the place of standard output or error: what a log is that nobody reads.
//
//   FullPipe pipe;
//   {
//     const StandsFor log(STDERR_FILENO, pipe);
//     StderrLogger logger("m");                // has nowhere to write to
//   }
//   pipe.ReadUntil("\n", limit);               // makes room
#ifndef SETU_TESTS_SUPPORT_FULL_PIPE_H_
#define SETU_TESTS_SUPPORT_FULL_PIPE_H_

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/check.h"

namespace setu::test {

class FullPipe {
 public:
  FullPipe() {
    SETU_CHECK(pipe2(ends_, O_CLOEXEC) == 0, "a process may have two more files");
    SetBlocking(false);
    while (write(ends_[1], ".", 1) == 1) ++filled_;
    SetBlocking(true);
  }
  ~FullPipe() {
    CloseReader();
    close(ends_[1]);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  // Of all who share it.
  void SetBlocking(bool blocking) { fcntl(ends_[1], F_SETFL, blocking ? 0 : O_NONBLOCK); }
  void CloseReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  int writer() const { return ends_[1]; }

  // What was written behind the filling, read until it holds `part` or nothing came for `limit`.
  std::string ReadUntil(std::string_view part, std::chrono::milliseconds limit) {
    char piece[4096];
    pollfd ready{.fd = ends_[0], .events = POLLIN, .revents = 0};
    size_t from = filled_;  // what is before it was looked at
    while (read_.find(part, from) == std::string::npos &&
           poll(&ready, 1, static_cast<int>(limit.count())) == 1) {
      if (read_.size() > from + part.size()) from = read_.size() - part.size();
      const ssize_t n = read(ends_[0], piece, sizeof piece);
      if (n <= 0) break;
      read_.append(piece, static_cast<size_t>(n));
    }
    return read_.size() < filled_ ? "" : read_.substr(filled_);
  }

 private:
  int ends_[2];
  size_t filled_ = 0;
  std::string read_;
};

// While it lives, `descriptor` of this process and of those it starts is the pipe.
class StandsFor {
 public:
  StandsFor(int descriptor, const FullPipe& pipe)
      : descriptor_(descriptor), before_(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) {
    dup2(pipe.writer(), descriptor_);
  }
  ~StandsFor() {
    dup2(before_, descriptor_);
    close(before_);
  }
  StandsFor(const StandsFor&) = delete;
  StandsFor& operator=(const StandsFor&) = delete;

 private:
  const int descriptor_, before_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_FULL_PIPE_H_
