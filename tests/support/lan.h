// SPDX-License-Identifier: Apache-2.0
// A network of hosts, each in a namespace of its own, whose packets go through this: real TCP of
// real processes over links that lose, delay, reorder and cut. What a link does to one way it need
// not do to the other.
//
//   absl::StatusOr<std::unique_ptr<Lan>> lan = Lan::Make({"router", "decode-0"});
//   if (!lan.ok()) GTEST_SKIP() << lan.status();            // not on this machine
//   ProcessCluster cluster({.model = path, .lan = lan->get()});
//   (*lan)->Harm("router", "decode-0", {.lost = 1});        // that way alone
//   (*lan)->Heal();
//
// A harm is in force when the call returns; what is under way then arrives as it was to. Each way
// of a link draws for itself, from the seed on.
#ifndef SETU_TESTS_SUPPORT_LAN_H_
#define SETU_TESTS_SUPPORT_LAN_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/rpc/descriptor.h"
#include "tests/support/namespace.h"

namespace setu::test {

class Lan {
 public:
  // What becomes of the packets of one way. Shares of them are 0 to 1.
  struct Way {
    double lost = 0;
    double doubled = 0;
    // Of each up to so much; those that draw less overtake others.
    std::chrono::milliseconds delay{0};
    // Longer ones vanish, and nobody is told. Those of a connection's ends and pings are short.
    size_t longest = std::numeric_limits<size_t>::max();  // bytes, with the headers of IP and TCP
  };
  // Packets of one way.
  struct Counts {
    uint64_t passed = 0, lost = 0, doubled = 0, overtaken = 0;
  };

  // As Namespace::Make.
  static absl::StatusOr<std::unique_ptr<Lan>> Make(const std::vector<std::string>& hosts,
                                                   uint64_t seed = 1);
  ~Lan();

  // An IPv4 address, at which the others reach the host.
  std::string AddressOf(const std::string& host) const;
  // As Namespace::Run.
  void Run(const std::string& host, absl::FunctionRef<void()> act) const;

  // In place of what was said of that way before.
  void Harm(const std::string& from, const std::string& to, const Way& way);
  void HarmBoth(const std::string& a, const std::string& b, const Way& way);
  // Every link of the host, both ways.
  void HarmAll(const std::string& host, const Way& way);
  void Heal();  // everything
  // Takes the host's device down, and up again: it cannot send, and its kernel knows.
  void Unplug(const std::string& host) const;
  void Plug(const std::string& host) const;
  Counts counts(const std::string& from, const std::string& to) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Packet = std::vector<char>;
  struct Link {
    Way way;
    Counts counts;
    std::mt19937_64 random;
    Time last;  // when the last packet of those so far arrives
  };
  struct UnderWay {
    size_t to;
    Packet packet;
  };

  Lan(std::vector<std::string> names, std::vector<Namespace> hosts, uint64_t seed);
  size_t IndexOf(const std::string& host) const;
  Link& LinkOf(size_t from, size_t to) { return links_[from * hosts_.size() + to]; }
  void Carry();
  void Take(size_t from);
  void Pass(Link& link, size_t to, const Packet& packet);
  Time DeliverDue();

  const std::vector<std::string> names_;
  const std::vector<Namespace> hosts_;
  rpc::Descriptor stop_;

  mutable std::mutex mutex_;  // guards the rest
  std::vector<Link> links_;   // of all pairs, from one to another
  std::multimap<Time, UnderWay> under_way_;

  std::thread thread_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_LAN_H_
