// SPDX-License-Identifier: Apache-2.0
// How a worker on the router's lists stands, what keeps it from being used, and the words for it.
// Pure: all comes from what the worker says of itself.
//
//   Standing standing = Alone(worker, worker::v1::ROLE_DECODE, tokenizer_digest);
//   logger.Write(LevelOf(standing.state), LineAbout(ROLE_DECODE, "d:50053", standing));
#ifndef SETU_SERVICES_ROUTER_STANDING_H_
#define SETU_SERVICES_ROUTER_STANDING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/logging/logger.h"
#include "common/wire/convert.h"
#include "services/router/worker.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::router {

// kAwaited: out of reach as well, and never seen; it may still be loading its model.
enum class WorkerState : uint8_t { kUsable, kUnreachable, kAwaited, kNotReady, kDraining, kMisfit };

struct Standing {
  WorkerState state = WorkerState::kUnreachable;
  std::string why;  // kUnreachable, kAwaited, kMisfit: what is the matter
};

// Workers of one role by what keeps them from being used.
struct UnusableWorkers {
  size_t unreachable = 0;
  size_t not_ready = 0;
  size_t draining = 0;
  size_t misfit = 0;

  void Count(WorkerState state);  // kUsable counts nowhere, kAwaited as unreachable
  size_t total() const { return unreachable + not_ready + draining + misfit; }
  std::string Text() const;  // "1 unreachable, 0 not ready, 0 draining, 2 misfit"
};

const char* RoleName(worker::v1::Role role);

// Of a worker in sight, listed under `role`, by itself: other workers may still make it a misfit.
// `tokenizer` is the router's own digest, engine::TokenizerDigest.
Standing Alone(const Worker& worker, worker::v1::Role role, uint64_t tokenizer);

// Of two that the router can use. Empty where they may be paired; else the part that differs and
// both values, a's first. Where mixing is allowed, of workers that allow it too: all of them or
// none, so that who fits a third one fits each other.
std::string Difference(const Worker& a, const Worker& b, wire::Mixing mixing);
// Of a worker that none of the other role's fits; `other` is one of them.
Standing Unpaired(const Worker& worker, const Worker& other, wire::Mixing mixing);

// For the log: who, how it stands, and where something is to be done, what.
std::string LineAbout(worker::v1::Role role, const std::string& address, const Standing& standing);
Logger::Level LevelOf(WorkerState state);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_STANDING_H_
