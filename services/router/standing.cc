// SPDX-License-Identifier: Apache-2.0
#include "services/router/standing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/convert.h"

namespace setu::router {
namespace {

using wire::Mixing;
using worker::v1::DescribeResponse;
using worker::v1::Role;

// Empty where this router can use the worker as one of `role`.
std::string MisfitHere(const DescribeResponse& description, Role role, uint64_t tokenizer) {
  if (description.role() != role) {
    return absl::StrCat("its role is ", RoleName(description.role()), ", it is listed under --",
                        RoleName(role), "; list it under the flag of its role");
  }
  if (wire::kWireVersion < description.wire_version_min() ||
      wire::kWireVersion > description.wire_version_max()) {
    return absl::StrCat("it speaks wire versions ", description.wire_version_min(), " to ",
                        description.wire_version_max(), ", this router ", wire::kWireVersion,
                        "; run the same release on both");
  }
  const uint64_t theirs = description.fingerprint().tokenizer();
  if (theirs != tokenizer) {
    return absl::StrCat("its digest of the tokenizer is ", absl::Hex(theirs), ", this router's ",
                        absl::Hex(tokenizer), "; start both with the same --model");
  }
  return "";
}

}  // namespace

void UnusableWorkers::Count(WorkerState state) {
  switch (state) {
    case WorkerState::kUsable:
      return;
    case WorkerState::kUnreachable:
    case WorkerState::kAwaited:
      ++unreachable;
      return;
    case WorkerState::kNotReady:
      ++not_ready;
      return;
    case WorkerState::kDraining:
      ++draining;
      return;
    case WorkerState::kMisfit:
      ++misfit;
      return;
  }
}

std::string UnusableWorkers::Text() const {
  return absl::StrCat(unreachable, " unreachable, ", not_ready, " not ready, ", draining,
                      " draining, ", misfit, " misfit");
}

const char* RoleName(Role role) {
  if (role == worker::v1::ROLE_PREFILL) return "prefill";
  return role == worker::v1::ROLE_DECODE ? "decode" : "unknown";
}

Standing Alone(const Worker& worker, Role role, uint64_t tokenizer) {
  std::string misfit = MisfitHere(worker.description, role, tokenizer);
  if (!misfit.empty()) return {WorkerState::kMisfit, std::move(misfit)};
  if (worker.load.draining()) return {WorkerState::kDraining, ""};
  if (!worker.load.ready()) return {WorkerState::kNotReady, ""};
  return {WorkerState::kUsable, ""};
}

std::string Difference(const Worker& a, const Worker& b, Mixing mixing) {
  const worker::v1::Fingerprint &ours = a.description.fingerprint(),
                                &theirs = b.description.fingerprint();
  if (mixing == Mixing::kRefused) return wire::Difference(ours, theirs, mixing);
  if (ours.allow_mixed_numerics() != theirs.allow_mixed_numerics()) {
    const auto text = [](const auto& f) { return f.allow_mixed_numerics() ? "given" : "missing"; };
    return absl::StrCat("--allow-mixed-numerics is ", text(ours), " here and ", text(theirs),
                        " there");
  }
  return wire::Difference(ours, theirs, wire::MixingOf(ours, theirs));
}

Standing Unpaired(const Worker& worker, const Worker& other, Mixing mixing) {
  const bool mixable = wire::Difference(worker.description.fingerprint(),
                                        other.description.fingerprint(), Mixing::kAllowed)
                           .empty();
  return {
      WorkerState::kMisfit,
      absl::StrCat(Difference(worker, other, mixing), ", at ", RoleName(other.description.role()),
                   " worker ", other.address,
                   "; start all workers with the same release, --model, --numerics, --kv-dtype and "
                   "--weights",
                   mixable ? ", or these and the router with --allow-mixed-numerics" : "")};
}

std::string LineAbout(Role role, const std::string& address, const Standing& standing) {
  const std::string who = absl::StrCat(RoleName(role), " worker ", address);
  switch (standing.state) {
    case WorkerState::kUsable:
      return absl::StrCat(who, " is ready");
    case WorkerState::kUnreachable:
      return absl::StrCat(who, " is unreachable: ", standing.why, "; see that it runs and that --",
                          RoleName(role), " names it");
    case WorkerState::kAwaited:
      return absl::StrCat("waiting for ", who, ": ", standing.why, "; it may still be loading");
    case WorkerState::kNotReady:
      return absl::StrCat(who, " is in sight and not ready yet");
    case WorkerState::kDraining:
      return absl::StrCat(who, " drains: it gets nothing new");
    case WorkerState::kMisfit:
      return absl::StrCat(who, " does not fit and gets nothing: ", standing.why);
  }
  return who;
}

Logger::Level LevelOf(WorkerState state) {
  if (state == WorkerState::kMisfit) return Logger::Level::kError;
  return state == WorkerState::kUnreachable ? Logger::Level::kWarning : Logger::Level::kInfo;
}

}  // namespace setu::router
