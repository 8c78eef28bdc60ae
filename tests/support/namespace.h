// SPDX-License-Identifier: Apache-2.0
// A network of its own for a process: Linux's network namespace (network_namespaces(7)) with its
// loopback and one device, of which this has the other end. Each packet that is sent there can be
// read from it, and what is written to it arrives there.
//
//   absl::StatusOr<Namespace> host = Namespace::Make("10.77.0.1");
//   host->Run([&] { process = cli::Process::Start(arguments); });
//   read(host->device(), packet, sizeof packet);
#ifndef SETU_TESTS_SUPPORT_NAMESPACE_H_
#define SETU_TESTS_SUPPORT_NAMESPACE_H_

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/rpc/descriptor.h"

namespace setu::test {

class Namespace {
 public:
  // Its address, of a network of 256. Where only root may make one, this process first becomes root
  // of a user namespace of its own, for good: it must have one thread then. Any status says that
  // this machine does not allow it, and what it lacks.
  static absl::StatusOr<Namespace> Make(const std::string& address);

  // Sockets that are opened and processes that are started meanwhile, by this thread, are there.
  void Run(absl::FunctionRef<void()> act) const;
  // Up, as it is at first, or down: nothing goes to it or comes from it.
  void SetDevice(bool up) const;
  // Packets of IP, one with each read and write, never blocking.
  int device() const { return device_.get(); }

 private:
  Namespace(rpc::Descriptor space, rpc::Descriptor device)
      : space_(std::move(space)), device_(std::move(device)) {}

  rpc::Descriptor space_;  // keeps it
  rpc::Descriptor device_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_NAMESPACE_H_
