// SPDX-License-Identifier: Apache-2.0
#include "common/worker/description.h"

#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/wire/convert.h"

namespace setu::worker {
namespace {

std::string RandomIncarnation() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

int32_t PoolTokens(engine::Runner& runner) {
  return runner.pool().total() * runner.options().block_tokens;
}

}  // namespace

v1::DescribeResponse Describe(v1::Role role, engine::Runner& runner,
                              const std::string& incarnation) {
  v1::DescribeResponse description;
  description.set_role(role);
  description.set_incarnation(incarnation.empty() ? RandomIncarnation() : incarnation);
  *description.mutable_fingerprint() = wire::ToProto(runner.fingerprint());
  description.set_model_name(runner.config().name);
  description.set_architecture(runner.config().architecture);
  description.set_quantization(runner.config().quantization);
  description.set_context_length(runner.config().context_length);
  description.set_pool_tokens(PoolTokens(runner));
  description.set_wire_version_min(wire::kWireVersion);
  description.set_wire_version_max(wire::kWireVersion);
  return description;
}

std::string CapacityLine(engine::ModelRunner& runner, const std::string& settings) {
  return absl::StrCat(runner.pool().total(), " blocks x ", runner.options().block_tokens,
                      " tokens = ", PoolTokens(runner), " tokens, ", settings, ", ",
                      runner.ops().path_name(), " on ", runner.ops().isa_name(), ", ",
                      runner.ops().threads(), " threads");
}

}  // namespace setu::worker
