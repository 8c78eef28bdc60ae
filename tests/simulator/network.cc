// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/network.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace setu::simulator {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr double kBytesPerSecond = 50e6;

absl::Status Lost() { return absl::UnavailableError("the connection is lost"); }

}  // namespace

Pipe::Pipe(Network& network, Node& caller, Node& callee, std::string name)
    : network_(network),
      name_(std::move(name)),
      caller_{&caller, caller.life(), {}, {}, false},
      callee_{&callee, callee.up() ? callee.life() : 0, {}, {}, false} {}

bool Pipe::LivesAt(const End& end) const { return end.node->up() && end.node->life() == end.life; }

void Pipe::Send(End& from, End& to, Kind kind, const char* what, size_t bytes,
                std::function<void()> arrive) {
  if (over_ || !LivesAt(from)) return;
  Dice& dice = network_.dice_;
  const MessageFaults faults = kind == Kind::kControl ? MessageFaults{} : network_.faults_;
  if (dice.Chance(faults.lost)) return network_.timeline_.Tell("lost", absl::StrCat(name_, what));
  const auto sending = Duration(int64_t(1e9 * static_cast<double>(bytes) / kBytesPerSecond));
  TimePoint arrival = from.node->Now() + network_.Latency(*from.node, *to.node) + sending;
  if (dice.Chance(faults.delayed)) arrival += dice.Between(milliseconds(1), milliseconds(3000));
  if (!dice.Chance(faults.overtaking)) {
    to.last_arrival = arrival = std::max(arrival, to.last_arrival);
  }
  if (dice.Chance(faults.doubled)) {
    Plan(from, to, what, arrival + dice.Between(Duration(0), milliseconds(50)), arrive);
  }
  Plan(from, to, what, arrival, std::move(arrive));
}

void Pipe::Plan(End& from, End& to, const char* what, TimePoint arrival,
                std::function<void()> arrive) {
  network_.timeline_.At(arrival, [self = shared_from_this(), &from, &to, what,
                                  departed = from.node->Now(), arrive = std::move(arrive)] {
    // What would have gone out at the end of a turn that its process did not live to see did not.
    if (from.node->LivedUntil(from.life) < departed) return;
    self->Arrive(from, to, what, arrive);
  });
}

void Pipe::Arrive(End& from, End& to, const char* what, const std::function<void()>& arrive) {
  if (!Hears(to)) return;
  Network::Direction& direction = network_.DirectionOf(*from.node, *to.node);
  if (direction.stopped) {
    direction.parked.emplace_back([self = shared_from_this(), &from, &to, what, arrive] {
      self->Arrive(from, to, what, arrive);
    });
    return;
  }
  network_.timeline_.Tell(what, name_);
  to.node->Receive([self = shared_from_this(), &to, arrive] {
    if (self->Hears(to)) arrive();
  });
}

void Pipe::Cancel() {
  if (over_) return;
  over_ = caller_.told = true;
  network_.timeline_.After(network_.Latency(*caller_.node, *callee_.node),
                           [self = shared_from_this()] { self->Reach(); });
}

// The word that the caller has gone, where the link lets it pass.
void Pipe::Reach() {
  Network::Direction& direction = network_.DirectionOf(*caller_.node, *callee_.node);
  if (direction.stopped) {
    direction.parked.emplace_back([self = shared_from_this()] { self->Reach(); });
  } else {
    Tell(callee_, absl::CancelledError("the caller has gone"), Duration::zero());
  }
}

void Pipe::Break(const absl::Status& why, Duration to_caller, Duration to_callee) {
  if (over_) return;
  over_ = true;
  Tell(caller_, why, to_caller);
  Tell(callee_, why, to_callee);
}

void Pipe::Tell(End& end, const absl::Status& why, Duration after) {
  network_.timeline_.After(after, [self = shared_from_this(), &end, why] {
    if (!self->LivesAt(end)) return;
    end.node->Receive([self, &end, why] {
      if (!self->Hears(end)) return;
      end.told = true;
      if (end.ended) std::exchange(end.ended, nullptr)(why);
    });
  });
}

std::shared_ptr<Pipe> Network::Open(Node& caller, Node& callee, const char* method) {
  auto pipe = std::make_shared<Pipe>(
      *this, caller, callee,
      absl::StrCat(" ", method, "#", ++opened_, " ", caller.address(), "-", callee.address()));
  std::erase_if(pipes_, [](const auto& weak) {
    const std::shared_ptr<Pipe> open = weak.lock();
    return open == nullptr || open->over_;
  });
  pipes_.push_back(pipe);
  const auto stopped = [this, &caller, &callee] {
    return DirectionOf(caller, callee).stopped || DirectionOf(callee, caller).stopped;
  };
  // Where nobody listens the caller is told as soon as it can hear.
  const absl::Status refused = absl::UnavailableError("connection refused");
  if (!callee.up()) {
    timeline_.After(Duration(0),
                    [pipe, refused] { pipe->Break(refused, milliseconds(1), milliseconds(1)); });
  } else if (stopped()) {
    timeline_.After(kKeepalive, [pipe, refused, stopped] {
      if (stopped()) pipe->Break(refused, milliseconds(1), milliseconds(1));
    });
  }
  return pipe;
}

Network::Direction& Network::DirectionOf(const Node& from, const Node& to) {
  return directions_[{from.address(), to.address()}];
}

Duration Network::Latency(const Node& from, const Node& to) {
  const Duration usual = dice_.Between(Duration(microseconds(50)), microseconds(200));
  return Duration(int64_t(double(usual.count()) * DirectionOf(from, to).slowness));
}

void Network::Stop(const Node& from, const Node& to) {
  timeline_.Tell("stop", absl::StrCat(" ", from.address(), "-", to.address()));
  Direction& direction = DirectionOf(from, to);
  direction.stopped = true;
  timeline_.After(kKeepalive, [this, &from, &to, stop = ++direction.stops] {
    const Direction& then = DirectionOf(from, to);
    if (then.stopped && then.stops == stop) Break(from, to);
  });
}

void Network::Restore(const Node& from, const Node& to) {
  Direction& direction = DirectionOf(from, to);
  if (!std::exchange(direction.stopped, false)) return;
  timeline_.Tell("restore", absl::StrCat(" ", from.address(), "-", to.address()));
  for (auto& arrive : std::exchange(direction.parked, {})) arrive();
}

void Network::SlowDown(const Node& a, const Node& b, double times) {
  timeline_.Tell("slow", absl::StrCat(" ", a.address(), "-", b.address()));
  DirectionOf(a, b).slowness = DirectionOf(b, a).slowness = times;
}

template <typename Matches>
void Network::BreakWhere(const absl::Status& why, Duration after, Matches matches) {
  const auto pipes = pipes_;  // who hears of it may open others
  for (const std::weak_ptr<Pipe>& weak : pipes) {
    const std::shared_ptr<Pipe> pipe = weak.lock();
    if (pipe != nullptr && matches(*pipe)) pipe->Break(why, after, after);
  }
}

void Network::Break(const Node& a, const Node& b) {
  timeline_.Tell("break", absl::StrCat(" ", a.address(), "-", b.address()));
  BreakWhere(Lost(), milliseconds(1), [&](const Pipe& pipe) {
    const Node *caller = pipe.caller_.node, *callee = pipe.callee_.node;
    return (caller == &a && callee == &b) || (caller == &b && callee == &a);
  });
}

void Network::Died(const Node& node, bool machine) {
  const Duration after = machine ? kKeepalive : Duration(milliseconds(1));
  BreakWhere(Lost(), after, [&](const Pipe& pipe) {
    return pipe.caller_.node == &node || pipe.callee_.node == &node;
  });
}

void Network::Heal() {
  faults_ = {};
  for (auto& [ends, direction] : directions_) {
    direction.slowness = 1;
    if (!std::exchange(direction.stopped, false)) continue;
    for (auto& arrive : std::exchange(direction.parked, {})) arrive();
  }
}

}  // namespace setu::simulator
