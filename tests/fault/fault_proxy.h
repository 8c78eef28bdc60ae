// SPDX-License-Identifier: Apache-2.0
// A TCP link that can be harmed while it is in use: a proxy before one address, for tests.
//
//   FaultProxy link("127.0.0.1:50053");
//   Connect(link.address());
//   link.Harm({.there = {.flips = 0.01}});                             // every connection's
//   link.Harm({.back = {.held = true}}, cluster.pid("prefill-0"));     // those of one process
//   link.Heal();
//
// A harm is in force when the call returns. The same seed harms the same bytes: each connection and
// each way of it draws for itself.
#ifndef SETU_TESTS_FAULT_FAULT_PROXY_H_
#define SETU_TESTS_FAULT_FAULT_PROXY_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/rpc/descriptor.h"

namespace setu::test {

class FaultProxy {
 public:
  // What becomes of bytes on their way.
  struct Way {
    std::chrono::milliseconds delay{0};
    double flips = 0;  // of them, the share of which one bit is turned
    // Bytes of a connection that arrive, and then its end.
    uint64_t end_after = std::numeric_limits<uint64_t>::max();
    bool held = false;  // they wait until this way is healed
    // They are taken and never arrive, nor does the end of the connection, not even when this way
    // is healed: no end of it hears that it is dead.
    bool swallowed = false;
  };
  struct Harms {
    Way there, back;      // from who connects, and to it
    bool refuse = false;  // new connections are reset at once
  };
  struct Counts {
    std::atomic<uint64_t> connections = 0, refused = 0, cut = 0;
    std::atomic<uint64_t> passed = 0, delayed = 0, flipped = 0, swallowed = 0;  // bytes
    std::atomic<uint64_t> ended = 0;  // ways that came to `end_after`
  };

  // Listens at a free port of the loopback; `upstream` is one of its addresses.
  explicit FaultProxy(const std::string& upstream, uint64_t seed = 1);
  ~FaultProxy();  // ends all connections

  const std::string& address() const { return address_; }
  // In place of what was said of that process before, or of all that nothing is said of.
  void Harm(const Harms& harms, pid_t caller = kAnybody);
  void Heal();  // everybody's links
  void Cut();   // resets every connection
  const Counts& counts() const { return counts_; }

  static constexpr pid_t kAnybody = -1;

 private:
  struct Connection;

  void Run();
  void Accept();
  const Harms& HarmsOf(pid_t caller) const;
  void Wake() const;

  const int upstream_port_;
  const uint64_t seed_;
  rpc::Descriptor listener_, wake_;
  std::string address_;
  Counts counts_;

  std::mutex mutex_;  // guards the rest, but while the thread waits
  bool stopping_ = false;
  std::map<pid_t, Harms> harms_;
  std::list<Connection> connections_;

  std::thread thread_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_FAULT_FAULT_PROXY_H_
