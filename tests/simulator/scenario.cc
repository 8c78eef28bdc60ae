// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/scenario.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "setu/v1/inference.pb.h"
#include "tests/simulator/hash_model.h"

namespace setu::simulator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int32_t kLeastBlocks = 60;  // every request that is drawn fits so many
constexpr int32_t kMostPrompt = 60;
constexpr int32_t kMostAnswer = 48;
constexpr Duration kMostPatience = seconds(60);

PrefillSetup DrawPrefill(Dice& dice) {
  PrefillSetup setup;
  setup.blocks = static_cast<int32_t>(dice.Between(kLeastBlocks, 120));
  setup.slowness = static_cast<int32_t>(dice.Between(1, 10));
  setup.options.chunk_tokens = static_cast<int32_t>(4 * dice.Between(1, 16));
  setup.options.queue = static_cast<int32_t>(dice.Between(1, 16));
  setup.options.age_limit = dice.Between(milliseconds(10), seconds(5));
  setup.options.push_deadline = seconds(dice.Between(5, 60));
  setup.options.prefix_cache = !dice.Chance(0.1);
  return setup;
}

DecodeSetup DrawDecode(Dice& dice) {
  DecodeSetup setup;
  setup.blocks = static_cast<int32_t>(dice.Between(kLeastBlocks, 120));
  setup.slowness = static_cast<int32_t>(dice.Between(1, 20));
  setup.options.max_running = static_cast<int32_t>(dice.Between(3, 16));
  setup.options.grant_output_tokens = static_cast<int32_t>(dice.Between(1, kMostAnswer));
  setup.options.resume_watermark = static_cast<int32_t>(dice.Between(0, 8));
  setup.options.unsent_tokens = static_cast<int32_t>(dice.Between(34, 256));
  setup.options.stall_limit = seconds(dice.Between(2, 30));
  setup.options.transfer_stall = seconds(dice.Between(1, 10));
  setup.options.chunk_tokens = static_cast<int32_t>(4 * dice.Between(1, 12));
  setup.options.itl_target_ms = dice.Chance(0.5) ? 0 : static_cast<int32_t>(dice.Between(3, 20));
  setup.options.prefix_cache = !dice.Chance(0.1);
  return setup;
}

// A start that others share, or none, and an end of its own.
std::vector<uint32_t> DrawPrompt(Dice& dice) {
  std::vector<uint32_t> ids;
  const auto length = static_cast<size_t>(dice.Between(1, kMostPrompt));
  if (dice.Chance(0.7)) {
    Dice shared(static_cast<uint64_t>(dice.Below(3)));
    const auto common = static_cast<size_t>(dice.Below(kMostPrompt));
    while (ids.size() < std::min(common, length)) {
      ids.push_back(static_cast<uint32_t>(shared.Below(256)));
    }
  }
  while (ids.size() < length) ids.push_back(static_cast<uint32_t>(dice.Below(256)));
  return ids;
}

std::string DrawRequest(Dice& dice) {
  setu::v1::GenerateRequest request;
  for (const uint32_t id : DrawPrompt(dice)) request.mutable_token_ids()->add_ids(id);
  setu::v1::Sampling& sampling = *request.mutable_sampling();
  sampling.set_max_tokens(static_cast<uint32_t>(dice.Between(1, kMostAnswer)));
  sampling.set_seed(dice.Next());
  sampling.set_temperature(dice.Chance(0.3) ? 0.0f : 1.0f);
  if (dice.Chance(0.2)) sampling.set_n(static_cast<uint32_t>(dice.Between(2, 3)));
  if (dice.Chance(0.2)) sampling.set_repetition_penalty(1.5f);
  if (dice.Chance(0.2)) sampling.set_presence_penalty(0.5f);
  if (dice.Chance(0.2)) sampling.set_top_k(2);
  if (dice.Chance(0.3)) request.mutable_stopping()->set_ignore_eos(true);
  if (dice.Chance(0.2)) request.mutable_stopping()->add_strings(std::string(1, 'a'));
  return request.SerializeAsString();
}

Wish DrawWish(int32_t number, Dice& dice) {
  Wish wish;
  wish.name = absl::StrCat("request-", number);
  wish.request = DrawRequest(dice);
  wish.share.tenant = static_cast<uint32_t>(dice.Below(3));
  wish.share.weight = wish.share.tenant + 1;
  wish.share.priority = static_cast<router::Priority>(dice.Below(router::kPriorities));
  wish.cache_salt = wish.share.tenant;
  wish.patience = dice.Between(seconds(1), kMostPatience);
  if (dice.Chance(0.15)) wish.leaves = dice.Between(Duration(0), seconds(3));
  if (dice.Chance(0.1)) wish.pause = dice.Between(milliseconds(1), seconds(2));
  return wish;
}

MessageFaults DrawMessageFaults(Dice& dice) {
  MessageFaults faults;
  if (dice.Chance(0.5)) faults.delayed = 0.02;
  if (dice.Chance(0.3)) faults.lost = 0.005;
  if (dice.Chance(0.3)) faults.doubled = 0.02;
  if (dice.Chance(0.2)) faults.overtaking = 0.02;
  return faults;
}

}  // namespace

Scenario DrawScenario(Mode mode, Dice& dice) {
  Scenario scenario;
  scenario.routers = dice.Chance(0.15) ? 2 : 1;
  const int64_t prefills = dice.Between(1, 3), decodes = dice.Between(1, 3);
  for (int64_t i = 0; i < prefills; ++i) scenario.prefill.push_back(DrawPrefill(dice));
  for (int64_t i = 0; i < decodes; ++i) scenario.decode.push_back(DrawDecode(dice));
  scenario.router.queue.capacity = static_cast<size_t>(dice.Between(4, 64));
  scenario.router.queue.age_bound = dice.Between(milliseconds(100), seconds(5));
  scenario.router.local_prefill = dice.Chance(0.4);
  // One seed in eight has no faults, and one in four of the others in safety none of messages.
  if (!dice.Chance(0.125)) {
    scenario.faults = static_cast<int32_t>(dice.Between(1, 25));
    if (mode == Mode::kSafety) scenario.messages = DrawMessageFaults(dice);
  }
  Excuses excuses;
  excuses.may_be_refused = true;
  excuses.may_fail = scenario.faults > 0;
  excuses.may_begin_twice = scenario.faults > 0 && scenario.router.local_prefill;
  excuses.may_break =
      scenario.messages.lost + scenario.messages.doubled + scenario.messages.overtaking > 0;
  const int64_t requests = dice.Between(1, 30);
  const Duration length = dice.Between(milliseconds(100), seconds(20));
  for (int64_t i = 0; i < requests; ++i) {
    Asking asking;
    asking.at = seconds(1) + dice.Between(Duration(0), length);
    asking.router = static_cast<size_t>(dice.Below(scenario.routers));
    asking.wish = DrawWish(static_cast<int32_t>(i), dice);
    asking.wish.excuses = excuses;
    scenario.askings.push_back(std::move(asking));
  }
  return scenario;
}

namespace {

Wish GreedyWish(std::string name, const std::vector<uint32_t>& prompt, uint32_t max_tokens) {
  setu::v1::GenerateRequest request;
  request.mutable_token_ids()->mutable_ids()->Add(prompt.begin(), prompt.end());
  request.mutable_sampling()->set_max_tokens(max_tokens);
  request.mutable_sampling()->set_temperature(0);
  Wish wish;
  wish.name = std::move(name);
  wish.request = request.SerializeAsString();
  wish.patience = std::chrono::seconds(60);
  return wish;
}

}  // namespace

Wish TwinWish(int32_t number) {
  return GreedyWish(absl::StrCat("twin-", number), std::vector<uint32_t>(kTwinPrompt, 7), 4);
}

Wish ProbeWish(int32_t number, Dice& dice) {
  return GreedyWish(absl::StrCat("probe-", number), DrawPrompt(dice), 8);
}

}  // namespace setu::simulator
