// SPDX-License-Identifier: Apache-2.0
// One worker process as the router knows it. A worker that restarts at the same address is another
// Worker: claims on the old one end with their streams.
#ifndef SETU_SERVICES_ROUTER_WORKER_H_
#define SETU_SERVICES_ROUTER_WORKER_H_

#include <memory>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "services/router/change_lines.h"
#include "services/router/circuit.h"
#include "services/router/placement.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::router {

struct Worker {
  std::string address;
  worker::v1::DescribeResponse description;
  worker::v1::WatchLoadResponse load;  // newest
  TimePoint full_until;                // no new work before; it refused some for lack of room
  Circuit circuit;                     // whether it gets new work, as far as it failed
  ChangeLines circuit_lines;           // about that
  Claimed claimed;
  size_t prefix_slot = 0;  // in the directory's prefix index
};

// This router's claim on a worker: counted from its making to its end.
class Claim {
 public:
  Claim() = default;
  Claim(std::shared_ptr<Worker> worker, const Claimed& claimed)
      : worker_(std::move(worker)), claimed_(claimed) {
    Add(+1);
  }
  Claim(Claim&& other) noexcept { *this = std::move(other); }
  Claim& operator=(Claim&& other) noexcept {
    Release();
    worker_ = std::move(other.worker_);
    claimed_ = other.claimed_;
    return *this;
  }
  ~Claim() { Release(); }

  void Release() {
    if (worker_) Add(-1);
    worker_ = nullptr;
  }
  const std::shared_ptr<Worker>& worker() const { return worker_; }

 private:
  void Add(int sign) {
    worker_->claimed.blocks += sign * claimed_.blocks;
    worker_->claimed.sequences += sign * claimed_.sequences;
    worker_->claimed.tokens += sign * claimed_.tokens;
    worker_->claimed.prompts += sign * claimed_.prompts;
  }
  std::shared_ptr<Worker> worker_;
  Claimed claimed_;
};

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_WORKER_H_
