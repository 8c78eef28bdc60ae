// SPDX-License-Identifier: Apache-2.0
#include "services/router/circuit.h"

#include <algorithm>

namespace setu::router {

Circuit::Circuit(const Times& times, uint64_t seed)
    : times_(times), chance_(static_cast<std::minstd_rand::result_type>(seed ^ (seed >> 32))) {}

Circuit::State Circuit::state(TimePoint now) const {
  if (closed_) return State::kClosed;
  return now < half_open_at_ ? State::kOpen : State::kHalfOpen;
}

void Circuit::Open(TimePoint now) {
  ++openings_;
  length_ = closed_ ? times_.first : std::min(2 * length_, times_.longest);
  closed_ = false;
  probes_ = 0;
  std::uniform_int_distribution<Duration::rep> lengths(length_.count() / 2, length_.count());
  half_open_at_ = now + Duration(lengths(chance_));
}

void Circuit::Close() {
  closed_ = true;
  probes_ = 0;
}

Trial::Trial(std::shared_ptr<Circuit> circuit)
    : circuit_(std::move(circuit)), openings_(circuit_->openings_), probe_(!circuit_->closed_) {
  if (probe_) ++circuit_->probes_;
}

Trial& Trial::operator=(Trial&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  circuit_ = std::move(other.circuit_);
  openings_ = other.openings_;
  probe_ = other.probe_;
  return *this;
}

bool Trial::Counts() const { return circuit_ != nullptr && circuit_->openings_ == openings_; }

bool Trial::Worked() {
  if (!std::exchange(probe_, false) || !Counts()) return false;
  circuit_->Close();
  return true;
}

bool Trial::Failed(TimePoint now) {
  const bool counts = Counts();
  if (counts) circuit_->Open(now);
  circuit_ = nullptr;
  return counts;
}

void Trial::Drop() {
  if (probe_ && Counts() && !circuit_->closed_) --circuit_->probes_;
  circuit_ = nullptr;
}

}  // namespace setu::router
