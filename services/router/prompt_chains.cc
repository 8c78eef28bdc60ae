// SPDX-License-Identifier: Apache-2.0
#include "services/router/prompt_chains.h"

#include <algorithm>

namespace setu::router {

const std::vector<kv::BlockHash>& PromptChains::For(const worker::v1::Fingerprint& fingerprint) {
  const auto block_tokens =
      static_cast<int32_t>(std::max(fingerprint.kv_layout().block_tokens(), 1u));
  const kv::BlockHash root = kv::RootHash({.model = fingerprint.model(),
                                           .numerics = fingerprint.numerics(),
                                           .block_tokens = block_tokens,
                                           .salt = salt_});
  const auto [chain, is_new] = chains_.try_emplace(root);
  if (is_new) chain->second = kv::Chain(root, ids_, block_tokens);
  return chain->second;
}

void SetKnown(PromptChains& chains, const PrefixIndex& index, const Workers& workers,
              std::vector<WorkerView>& prefills, std::vector<WorkerView>& decodes) {
  std::map<const std::vector<kv::BlockHash>*, std::vector<int32_t>> known;  // by chain: [slots]
  const auto set = [&](const Workers::Entry& entry, WorkerView& view) {
    const std::vector<kv::BlockHash>& chain = chains.For(entry.worker->description.fingerprint());
    const auto [by_slot, is_new] = known.try_emplace(&chain);
    if (is_new) by_slot->second = index.Known(chain);
    view.known_blocks = by_slot->second[entry.worker->prefix_slot];
  };
  for (size_t i = 0; i < prefills.size(); ++i) set(workers.prefill[i], prefills[i]);
  for (size_t i = 0; i < decodes.size(); ++i) set(workers.decode[i], decodes[i]);
}

}  // namespace setu::router
