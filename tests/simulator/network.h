// SPDX-License-Identifier: Apache-2.0
// What joins the nodes. A pipe is one call between two of them: what one end sends arrives at the
// other, in order, until the pipe ends. A link is all that two nodes share: it can be slow, stand
// still in either direction, and break. Losing, doubling and overtaking of single messages is what
// no transport of ours does; where it is switched on, answers may fail but may not be wrong.
#ifndef SETU_TESTS_SIMULATOR_NETWORK_H_
#define SETU_TESTS_SIMULATOR_NETWORK_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/node.h"
#include "tests/simulator/timeline.h"

namespace setu::simulator {

// After so long without a sign of life a connection is given up by both its ends.
inline constexpr Duration kKeepalive = std::chrono::seconds(20);

// Chances of single messages.
struct MessageFaults {
  double lost = 0, doubled = 0, overtaking = 0, delayed = 0;
};

class Network;

class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  // Called once where the pipe ends otherwise than by this end's own doing.
  using Ended = std::function<void(const absl::Status&)>;

  Pipe(Network& network, Node& caller, Node& callee, std::string name);

  // kControl: begins and ends a call, which the transport itself sees to.
  enum class Kind { kMessage, kControl };

  // From the node whose turn or event it is. `arrive` runs at the other one.
  void SendUp(const char* what, size_t bytes, std::function<void()> arrive,
              Kind kind = Kind::kMessage) {
    Send(caller_, callee_, kind, what, bytes, std::move(arrive));
  }
  void SendDown(const char* what, size_t bytes, std::function<void()> arrive,
                Kind kind = Kind::kMessage) {
    Send(callee_, caller_, kind, what, bytes, std::move(arrive));
  }
  void OnEndAtCaller(Ended ended) { caller_.ended = std::move(ended); }
  void OnEndAtCallee(Ended ended) { callee_.ended = std::move(ended); }
  // The caller wants no more; the callee hears of it soon.
  void Cancel();
  // The caller has heard the end.
  void Close() { over_ = caller_.told = callee_.told = true; }
  Node& caller() const { return *caller_.node; }
  Node& callee() const { return *callee_.node; }

 private:
  friend class Network;
  struct End {
    Node* node;
    uint64_t life;  // 0: not known yet; of the node when it took part
    TimePoint last_arrival;
    Ended ended;
    bool told;  // of the end: nothing arrives there any more
  };
  bool LivesAt(const End& end) const;
  bool Hears(const End& end) const { return !end.told && LivesAt(end); }
  void Send(End& from, End& to, Kind kind, const char* what, size_t bytes,
            std::function<void()> arrive);
  void Plan(End& from, End& to, const char* what, TimePoint arrival, std::function<void()> arrive);
  void Arrive(End& from, End& to, const char* what, const std::function<void()>& arrive);
  void Break(const absl::Status& why, Duration to_caller, Duration to_callee);
  void Reach();
  void Tell(End& end, const absl::Status& why, Duration after);

  Network& network_;
  const std::string name_;
  End caller_, callee_;
  bool over_ = false;  // nothing more is sent; what is on its way still arrives
};

class Network {
 public:
  Network(Timeline& timeline, Dice& dice) : timeline_(timeline), dice_(dice) {}

  std::shared_ptr<Pipe> Open(Node& caller, Node& callee, const char* method);

  // Both directions, or one.
  void Stop(const Node& from, const Node& to);
  void Restore(const Node& from, const Node& to);
  void SlowDown(const Node& a, const Node& b, double times);
  void Break(const Node& a, const Node& b);
  // The node's process or its whole machine is gone: then the others hear of it late.
  void Died(const Node& node, bool machine);
  void SetMessageFaults(const MessageFaults& faults) { faults_ = faults; }
  void Heal();

 private:
  friend class Pipe;
  struct Direction {
    bool stopped = false;
    uint64_t stops = 0;
    double slowness = 1;
    std::deque<std::function<void()>> parked;
  };
  Direction& DirectionOf(const Node& from, const Node& to);
  Duration Latency(const Node& from, const Node& to);
  template <typename Matches>
  void BreakWhere(const absl::Status& why, Duration after, Matches matches);

  Timeline& timeline_;
  Dice& dice_;
  MessageFaults faults_;
  std::map<std::pair<std::string, std::string>, Direction> directions_;
  std::vector<std::weak_ptr<Pipe>> pipes_;
  uint64_t opened_ = 0;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_NETWORK_H_
