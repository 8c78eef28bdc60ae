// SPDX-License-Identifier: Apache-2.0
#include "tests/support/lan.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace setu::test {
namespace {

constexpr char kNetwork[] = "10.77.0.";

std::string Address(size_t host) { return absl::StrCat(kNetwork, host + 1); }

// Of a packet to one of `hosts` of them (RFC 791); else their number. Others are for nobody here:
// the kernel's own of IPv6, say.
size_t Destination(const std::vector<char>& packet, size_t hosts) {
  constexpr size_t kHeader = 20, kLastByteOfDestination = 19;
  if (packet.size() < kHeader || packet[0] >> 4 != 4) return hosts;
  const size_t host = static_cast<unsigned char>(packet[kLastByteOfDestination]) - size_t{1};
  return std::min(host, hosts);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lan>> Lan::Make(const std::vector<std::string>& hosts,
                                               uint64_t seed) {
  std::vector<Namespace> spaces;
  for (size_t i = 0; i < hosts.size(); ++i) {
    SETU_ASSIGN_OR_RETURN(Namespace space, Namespace::Make(Address(i)));
    spaces.push_back(std::move(space));
  }
  return std::unique_ptr<Lan>(new Lan(hosts, std::move(spaces), seed));
}

Lan::Lan(std::vector<std::string> names, std::vector<Namespace> hosts, uint64_t seed)
    : names_(std::move(names)),
      hosts_(std::move(hosts)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      links_(hosts_.size() * hosts_.size()) {
  for (Link& link : links_) link.random.seed(seed++);
  thread_ = std::thread([this] { Carry(); });
}

Lan::~Lan() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

size_t Lan::IndexOf(const std::string& host) const {
  const auto found = std::find(names_.begin(), names_.end(), host);
  SETU_CHECK(found != names_.end(), "a host of this network");
  return static_cast<size_t>(found - names_.begin());
}

std::string Lan::AddressOf(const std::string& host) const { return Address(IndexOf(host)); }

void Lan::Run(const std::string& host, absl::FunctionRef<void()> act) const {
  hosts_[IndexOf(host)].Run(act);
}

void Lan::Harm(const std::string& from, const std::string& to, const Way& way) {
  const std::lock_guard lock(mutex_);
  LinkOf(IndexOf(from), IndexOf(to)).way = way;
}

void Lan::HarmBoth(const std::string& a, const std::string& b, const Way& way) {
  Harm(a, b, way);
  Harm(b, a, way);
}

void Lan::HarmAll(const std::string& host, const Way& way) {
  for (const std::string& other : names_) HarmBoth(host, other, way);
}

void Lan::Heal() {
  const std::lock_guard lock(mutex_);
  for (Link& link : links_) link.way = {};
}

void Lan::Unplug(const std::string& host) const { hosts_[IndexOf(host)].SetDevice(false); }

void Lan::Plug(const std::string& host) const { hosts_[IndexOf(host)].SetDevice(true); }

Lan::Counts Lan::counts(const std::string& from, const std::string& to) const {
  const std::lock_guard lock(mutex_);
  return links_[IndexOf(from) * hosts_.size() + IndexOf(to)].counts;
}

void Lan::Carry() {
  std::vector<pollfd> waits;
  for (const Namespace& host : hosts_) waits.push_back({host.device(), POLLIN, 0});
  waits.push_back({stop_.get(), POLLIN, 0});
  while (waits.back().revents == 0) {
    Time next = Time::max();
    {
      const std::lock_guard lock(mutex_);
      for (size_t host = 0; host < hosts_.size(); ++host) {
        if (waits[host].revents != 0) Take(host);
      }
      next = DeliverDue();
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::clamp<std::chrono::nanoseconds>(next - std::chrono::steady_clock::now(),
                                             std::chrono::nanoseconds(0), std::chrono::hours(1)));
    poll(waits.data(), waits.size(), static_cast<int>(left.count()));
  }
}

// What the host has sent, but not more than others can wait for.
void Lan::Take(size_t from) {
  constexpr int kAtOnce = 64;
  std::array<char, 65536> buffer;
  for (int i = 0; i < kAtOnce; ++i) {
    const ssize_t bytes = read(hosts_[from].device(), buffer.data(), buffer.size());
    if (bytes <= 0) return;
    const Packet packet(buffer.begin(), buffer.begin() + bytes);
    const size_t to = Destination(packet, hosts_.size());
    if (to < hosts_.size()) Pass(LinkOf(from, to), to, packet);
  }
}

void Lan::Pass(Link& link, size_t to, const Packet& packet) {
  std::uniform_real_distribution<double> share;
  if (packet.size() > link.way.longest || share(link.random) < link.way.lost) {
    ++link.counts.lost;
    return;
  }
  const bool doubled = share(link.random) < link.way.doubled;
  for (int copy = 0; copy < (doubled ? 2 : 1); ++copy) {
    const auto delay = std::chrono::duration_cast<std::chrono::nanoseconds>(link.way.delay);
    const Time at = std::chrono::steady_clock::now() +
                    std::chrono::nanoseconds(static_cast<int64_t>(
                        share(link.random) * static_cast<double>(delay.count())));
    if (at < link.last) ++link.counts.overtaken;
    link.last = std::max(link.last, at);
    under_way_.emplace(at, UnderWay{to, packet});
  }
  ++link.counts.passed;
  link.counts.doubled += doubled ? 1 : 0;
}

// When the next is due. One that the other end has no room for is lost, as on any network.
Lan::Time Lan::DeliverDue() {
  const Time now = std::chrono::steady_clock::now();
  while (!under_way_.empty() && under_way_.begin()->first <= now) {
    const UnderWay& first = under_way_.begin()->second;
    [[maybe_unused]] const ssize_t written =
        write(hosts_[first.to].device(), first.packet.data(), first.packet.size());
    under_way_.erase(under_way_.begin());
  }
  return under_way_.empty() ? Time::max() : under_way_.begin()->first;
}

}  // namespace setu::test
