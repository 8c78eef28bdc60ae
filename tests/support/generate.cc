// SPDX-License-Identifier: Apache-2.0
#include "tests/support/generate.h"

#include <algorithm>
#include <random>
#include <span>

#include "common/base/check.h"

namespace setu::test {
namespace {

struct Running {
  Generated* out = nullptr;
  std::vector<kv::BlockId> blocks;
  int32_t done = 0;    // tokens whose KV is there
  int32_t wanted = 0;  // length at which it ends

  bool finished() const { return static_cast<int32_t>(out->ids.size()) == wanted; }
};

// One step over all that run, each as far as the chunk and the step's rows allow.
void StepOnce(engine::ModelRunner& runner, const Cut& cut, std::vector<Running>& running) {
  std::vector<engine::StepEntry> entries;
  std::vector<Running*> sampling;
  int32_t rows = runner.options().max_rows;
  for (Running& r : running) {
    const auto left = static_cast<int32_t>(r.out->ids.size()) - r.done;
    const int32_t take = std::min({left, cut.chunk, rows});
    if (r.finished() || take == 0) continue;
    rows -= take;
    entries.push_back({.ids = std::span(r.out->ids).subspan(r.done, take),
                       .start = r.done,
                       .blocks = r.blocks,
                       .want_logits = take == left});
    r.done += take;
    if (take == left) sampling.push_back(&r);
  }
  const kernels::ConstMatrix logits = runner.Step(entries);
  SETU_CHECK(logits.rows == std::ssize(sampling), "a row for each entry that wants one");
  for (int64_t i = 0; i < logits.rows; ++i) {
    Generated& out = *sampling[i]->out;
    const float* row = logits.Row(i);
    out.logits.insert(out.logits.end(), row, row + logits.cols);
    out.ids.push_back(static_cast<int32_t>(std::max_element(row, row + logits.cols) - row));
  }
}

}  // namespace

std::vector<Generated> Generate(engine::ModelRunner& runner,
                                const std::vector<std::vector<int32_t>>& prompts, int32_t count,
                                const Cut& cut) {
  std::vector<Generated> out;
  for (const auto& prompt : prompts) out.push_back({.ids = prompt});
  for (size_t first = 0; first < prompts.size(); first += cut.batch) {
    const auto lease = runner.pool().Take(runner.pool().total());
    SETU_CHECK(lease.has_value(), "the pool is free");
    std::vector<kv::BlockId> order(lease->blocks().begin(), lease->blocks().end());
    if (cut.shuffle != 0) std::shuffle(order.begin(), order.end(), std::mt19937(cut.shuffle));
    std::vector<Running> running;
    for (size_t i = first; i < std::min(prompts.size(), first + cut.batch); ++i) {
      const auto wanted = static_cast<int32_t>(prompts[i].size()) + count;
      const int32_t blocks = kv::BlocksFor(wanted, runner.options().block_tokens);
      SETU_CHECK(blocks <= std::ssize(order), "the pool has room for the batch");
      running.push_back(
          {.out = &out[i], .blocks = {order.end() - blocks, order.end()}, .wanted = wanted});
      order.resize(order.size() - blocks);
    }
    while (!std::ranges::all_of(running, &Running::finished)) StepOnce(runner, cut, running);
  }
  return out;
}

}  // namespace setu::test
