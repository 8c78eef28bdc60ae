// SPDX-License-Identifier: Apache-2.0
// What a prefill worker would send, and what a whole cluster should answer, both computed by a
// runner of the test's own that has no batch beside it.
#ifndef SETU_TESTS_SERVICES_DECODE_FAKE_PREFILL_H_
#define SETU_TESTS_SERVICES_DECODE_FAKE_PREFILL_H_

#include <memory>
#include <string>
#include <vector>

#include "common/engine/model_runner.h"
#include "common/engine/sampler.h"
#include "common/wire/convert.h"
#include "setu/worker/v1/kv_transfer.pb.h"

namespace setu::decode {

// A runner of the tiny model at `path` with a pool of `blocks` blocks.
std::unique_ptr<engine::ModelRunner> LoadTiny(const std::string& path, int32_t blocks);

// A prompt of `tokens` seeded ids.
wire::Sequence Prompt(const std::string& uuid, int32_t tokens, int32_t max_tokens,
                      std::vector<uint32_t> choices = {0});

// All messages of one PushKv.
struct PushedKv {
  worker::v1::Manifest manifest;
  std::vector<worker::v1::Frame> frames;  // one per layer and block
  worker::v1::Commit commit;
};

class FakePrefill {
 public:
  explicit FakePrefill(const std::string& path);

  // All blocks but the first `blocks_held`.
  PushedKv Compute(const wire::Sequence& sequence, uint32_t attempt, int32_t blocks_held = 0);
  // The ids that one choice generates after sequence.ids.
  std::vector<engine::TokenId> Alone(const wire::Sequence& sequence, uint32_t choice);

 private:
  engine::SampledToken Sample(kernels::ConstMatrix logits, const wire::Sequence& sequence,
                              const std::vector<engine::TokenId>& ids, uint32_t choice);
  std::unique_ptr<engine::ModelRunner> runner_;
  engine::Sampler sampler_;
};

}  // namespace setu::decode

#endif  // SETU_TESTS_SERVICES_DECODE_FAKE_PREFILL_H_
