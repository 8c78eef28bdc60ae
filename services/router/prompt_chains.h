// SPDX-License-Identifier: Apache-2.0
// A prompt's blocks as workers name them: one chain for each model, numeric path and block size
// that is about, made when first asked for.
//
//   PromptChains chains(ids, salt);
//   SetKnown(chains, directory.prefixes(), directory.Usable(), prefill_views, decode_views);
#ifndef SETU_SERVICES_ROUTER_PROMPT_CHAINS_H_
#define SETU_SERVICES_ROUTER_PROMPT_CHAINS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/engine/sampling_params.h"
#include "common/kv/prefix_chain.h"
#include "services/router/placement.h"
#include "services/router/prefix_index.h"
#include "services/router/worker_directory.h"
#include "setu/worker/v1/worker.pb.h"

namespace setu::router {

class PromptChains {
 public:
  PromptChains() = default;
  // ids: all to prefill; of a resume, also what was generated.
  PromptChains(std::vector<engine::TokenId> ids, uint64_t cache_salt)
      : ids_(std::move(ids)), salt_(cache_salt) {}

  const std::vector<kv::BlockHash>& For(const worker::v1::Fingerprint& fingerprint);

 private:
  std::vector<engine::TokenId> ids_;
  uint64_t salt_ = 0;
  std::map<kv::BlockHash, std::vector<kv::BlockHash>> chains_;  // by root
};

// Fills in the `known_blocks` of views, which are parallel to the workers of their role.
void SetKnown(PromptChains& chains, const PrefixIndex& index, const Workers& workers,
              std::vector<WorkerView>& prefills, std::vector<WorkerView>& decodes);

}  // namespace setu::router

#endif  // SETU_SERVICES_ROUTER_PROMPT_CHAINS_H_
