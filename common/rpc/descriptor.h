// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed with its owner.
#ifndef SETU_COMMON_RPC_DESCRIPTOR_H_
#define SETU_COMMON_RPC_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace setu::rpc {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}  // -1: none, as a failed call returns it
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_DESCRIPTOR_H_
