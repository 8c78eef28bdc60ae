// SPDX-License-Identifier: Apache-2.0
#include "services/decode/request.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

namespace setu::decode {

Demand DemandOf(const wire::Sequence& sequence) {
  const auto tokens = static_cast<int32_t>(sequence.ids.size());
  const int32_t generated = tokens - sequence.prompt_length;
  return {.tokens = tokens,
          .output_tokens = sequence.sampling.max_tokens - generated,
          .choices = static_cast<int32_t>(sequence.choices.size()),
          .resumed = generated > 0};
}

int32_t GeneratedBefore(const Request& request) {
  return static_cast<int32_t>(request.sequence.ids.size()) - request.sequence.prompt_length;
}

int32_t Generated(const Sequence& sequence) {
  return static_cast<int32_t>(sequence.ids.size()) - sequence.request->sequence.prompt_length;
}

absl::Status CheckFirstTokens(const Request& request,
                              const std::vector<wire::FirstToken>& first_tokens) {
  const std::vector<uint32_t>& choices = request.sequence.choices;
  const bool same = std::equal(
      first_tokens.begin(), first_tokens.end(), choices.begin(), choices.end(),
      [](const wire::FirstToken& first, uint32_t choice) { return first.choice == choice; });
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("commit.first_tokens has ", first_tokens.size(),
                                                 " entries, must name the ", choices.size(),
                                                 " choices of the request in their order"));
}

Sequence& Fork(Request& request, const wire::FirstToken& first, kv::KvStorage& storage,
               kv::BlockPool& pool) {
  auto sequence = std::make_unique<Sequence>();
  sequence->request = &request;
  sequence->choice = first.choice;
  sequence->ids = request.sequence.ids;
  sequence->ids.push_back(first.token.id);
  sequence->place = request.place;
  sequence->delivered = GeneratedBefore(request);
  const GrantShape shape = request.grant.shape();
  if (request.running.empty()) {
    sequence->grant = request.grant.Split(shape.output);
  } else {
    const std::span<const kv::BlockId> prompt = request.lease.blocks();
    sequence->grant = request.grant.Split(shape.output + shape.copies);
    sequence->lease = pool.Share(prompt.first(prompt.size() - shape.copies));
    if (shape.copies > 0) {
      kv::BlockLease copy = sequence->grant.Take(1);
      storage.CopyBlock(prompt.back(), copy.blocks().front());
      sequence->lease.Append(std::move(copy));
    }
  }
  request.running.push_back(std::move(sequence));
  return *request.running.back();
}

}  // namespace setu::decode
