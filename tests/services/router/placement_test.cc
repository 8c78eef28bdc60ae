// SPDX-License-Identifier: Apache-2.0
#include "services/router/placement.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace setu::router {
namespace {

using Kind = Placement::Kind;

WorkerView Prefill(int64_t queued_tokens = 0, double rate = 1000) {
  WorkerView w;
  w.queued_tokens = queued_tokens;
  w.tokens_per_second = rate;
  w.blocks_total = 100;
  return w;
}

WorkerView Decode(int64_t free = 100, int64_t total = 100) {
  WorkerView w;
  w.blocks_total = total;
  w.blocks_free = free;
  w.running_max = 16;
  return w;
}

// 8 blocks of 16 tokens.
constexpr PlacementRequest kSmall = {
    .prompt_tokens = 64, .tokens_to_come = 64, .choices = 1, .salt = 1, .decode = {}};

TEST(PlacementTest, TakesThePrefillWithTheLeastWait) {
  const std::vector<WorkerView> prefills = {Prefill(4000), Prefill(400), Prefill(1000, 5000)};
  const std::vector<WorkerView> decodes = {Decode()};
  const Placement p = Place(kSmall, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kPair);
  EXPECT_EQ(p.prefill, 2u) << "more queued, but faster";
}

TEST(PlacementTest, TakesTheEmptierDecode) {
  const std::vector<WorkerView> prefills = {Prefill()};
  const std::vector<WorkerView> decodes = {Decode(20), Decode(90), Decode(50)};
  EXPECT_EQ(Place(kSmall, prefills, decodes).decode, 1u);
}

TEST(PlacementTest, WhatIsKnownNeedsNoTimeOnEitherSide) {
  std::vector<WorkerView> prefills = {Prefill(0), Prefill(1000)};
  std::vector<WorkerView> decodes = {Decode(95), Decode(85)};
  PlacementRequest request = kSmall;
  request.prompt_tokens = 1200;
  prefills[1].known_blocks = 70;
  decodes[1].known_blocks = 70;
  decodes[0].block_bytes = decodes[1].block_bytes = 1 << 20;
  const Placement p = Place(request, prefills, decodes);
  EXPECT_EQ(p.prefill, 1u) << "1000 ahead and 80 to compute are less than 1200";
  EXPECT_EQ(p.decode, 1u) << "70 MiB less to send";
  EXPECT_EQ(TokensToCompute(request, prefills[0]), 1200);
  EXPECT_EQ(TokensToCompute(request, prefills[1]), 80);
  prefills[1].queued_tokens = 2000;
  EXPECT_EQ(Place(request, prefills, decodes).prefill, 0u) << "a queue outweighs a hit";
  decodes[1].running = 4;
  decodes[1].tokens_per_second = 20;
  EXPECT_EQ(Place(request, prefills, decodes).decode, 0u) << "and so does a full batch";
}

TEST(PlacementTest, WhatMustBeSentTakesAsLongAsTheLinkDoes) {
  std::vector<WorkerView> prefills = {Prefill()};
  std::vector<WorkerView> decodes = {Decode(), Decode()};
  decodes[0].block_bytes = decodes[1].block_bytes = 1 << 20;
  decodes[0].known_blocks = 4;  // 64 tokens are 4 blocks
  decodes[0].running = 1;       // 64 steps of 1 ms
  decodes[0].tokens_per_second = 1000;
  EXPECT_EQ(Place(kSmall, prefills, decodes).decode, 1u) << "4 MiB in 4 ms, as long as not known";
  prefills[0].link_bytes_per_second = 50e6;
  EXPECT_EQ(Place(kSmall, prefills, decodes).decode, 0u) << "in 84 ms";
}

TEST(PlacementTest, TheLastTokenIsAlwaysComputed) {
  WorkerView w = Prefill();
  w.known_blocks = 4;
  EXPECT_EQ(TokensToCompute(kSmall, w), 16) << "64 tokens in 4 blocks";
  PlacementRequest request = kSmall;
  request.prompt_tokens = 65;
  EXPECT_EQ(TokensToCompute(request, w), 1);
}

// A decode worker that computes 500 tokens of prompts a second, beside an idle prefill one of 1000.
class LocalPrefill : public ::testing::Test {
 protected:
  LocalPrefill() {
    decodes_[0].prompt_tokens_per_second = 500;
    request_.local_prefill = true;
  }
  Kind KindNow() const { return Place(request_, prefills_, decodes_).kind; }

  PlacementRequest request_ = kSmall;
  std::vector<WorkerView> prefills_ = {Prefill()};
  std::vector<WorkerView> decodes_ = {Decode()};
};

TEST_F(LocalPrefill, IsChosenWhereItIsSooner) {
  EXPECT_EQ(KindNow(), Kind::kPair) << "the prefill worker is idle and faster";
  prefills_[0].queued_tokens = 1000;
  EXPECT_EQ(KindNow(), Kind::kLocal) << "a queue of a second against 128 ms";
  prefills_[0].queued_tokens = 0;
  decodes_[0].known_blocks = 3;
  EXPECT_EQ(KindNow(), Kind::kLocal) << "most is known there: 32 ms against 64";
}

TEST_F(LocalPrefill, CountsWhomItHoldsUp) {
  prefills_[0].queued_tokens = 1000;
  decodes_[0].running = 10;
  EXPECT_EQ(KindNow(), Kind::kPair) << "1.06 s for one against 128 ms for eleven";
  decodes_[0].running = 0;
  decodes_[0].queued_tokens = 1000;
  EXPECT_EQ(KindNow(), Kind::kPair) << "others are computed there already";
}

TEST_F(LocalPrefill, ServesWithoutAPrefillWorkerAndOnlyWhereAllowed) {
  prefills_.clear();
  EXPECT_EQ(KindNow(), Kind::kLocal);
  request_.local_prefill = false;
  EXPECT_EQ(KindNow(), Kind::kNoPair);
  request_.local_prefill = true;
  decodes_[0].prompt_tokens_per_second = 0;
  EXPECT_EQ(KindNow(), Kind::kNoPair);
}

TEST_F(LocalPrefill, NeedsRoomAndSize) {
  prefills_.clear();
  decodes_[0].blocks_free = 7;
  EXPECT_EQ(KindNow(), Kind::kWait);
  decodes_[0].blocks_free = 100;
  request_.prompt_tokens = 2000;
  EXPECT_EQ(KindNow(), Kind::kNeverFits);
  prefills_ = {Prefill()};
  prefills_[0].blocks_total = 3;
  request_.prompt_tokens = 64;
  EXPECT_EQ(KindNow(), Kind::kLocal) << "the prefill worker is too small for it";
}

TEST_F(LocalPrefill, IsNoWayToRetry) {
  request_.decode = 0;
  prefills_[0].queued_tokens = 100;
  EXPECT_EQ(KindNow(), Kind::kPair) << "decode waits for KV that is sent";
}

TEST(PlacementTest, OwnClaimsCountBeforeTheWorkersReport) {
  std::vector<WorkerView> prefills = {Prefill(0, 100), Prefill(0, 100)};
  std::vector<WorkerView> decodes = {Decode(), Decode()};
  std::vector<int> taken(2);
  for (uint64_t salt = 0; salt < 2 * kPrefillDepth; ++salt) {
    PlacementRequest request = kSmall;
    request.salt = salt;
    const Placement p = Place(request, prefills, decodes);
    ASSERT_EQ(p.kind, Kind::kPair);
    prefills[p.prefill].claimed.tokens += request.prompt_tokens;
    prefills[p.prefill].claimed.prompts += 1;
    decodes[p.decode].claimed.blocks += GrantBlocks(request, Decode());
    decodes[p.decode].claimed.sequences += 1;
    ++taken[p.decode];
  }
  EXPECT_EQ(taken, (std::vector<int>{kPrefillDepth, kPrefillDepth})) << "no herd onto one worker";
  EXPECT_EQ(Place(kSmall, prefills, decodes).kind, Kind::kWait) << "both prefills are deep";
}

// A rate that was measured with another batch says little of this one: who was fast once does not
// stay the fullest for it.
TEST(PlacementTest, OfNearlyEqualPredictionsTheEmptierTakesIt) {
  const std::vector<WorkerView> prefills = {Prefill()};
  std::vector<WorkerView> decodes = {Decode(50), Decode(60)};
  decodes[0].running = 9;
  decodes[0].tokens_per_second = 400;  // with a batch of 12
  decodes[1].running = 7;
  decodes[1].tokens_per_second = 250;  // with one of 6
  EXPECT_EQ(Place(kSmall, prefills, decodes).decode, 1u);
  decodes[1].tokens_per_second = 100;  // that is another machine
  EXPECT_EQ(Place(kSmall, prefills, decodes).decode, 0u);
}

TEST(PlacementTest, OfPrefillWorkersTheFasterTakesItBeTheDifferenceSmall) {
  std::vector<WorkerView> prefills = {Prefill(), Prefill()};
  const std::vector<WorkerView> decodes = {Decode()};
  prefills[0].tokens_per_second = 1900;
  prefills[1].tokens_per_second = 1000;
  EXPECT_EQ(Place(kSmall, prefills, decodes).prefill, 0u);
  std::swap(prefills[0], prefills[1]);
  EXPECT_EQ(Place(kSmall, prefills, decodes).prefill, 1u);
}

// Else it stays unmeasured until the others' queues are as many times longer as they are faster
// than what is assumed.
TEST(PlacementTest, APrefillWorkerThatWasNotMeasuredIsTakenForAsFastAsTheFastestThatFits) {
  std::vector<WorkerView> prefills = {Prefill(65, 50000), Prefill(64, 0), Prefill(0, 40)};
  std::vector<WorkerView> decodes = {Decode(), Decode(0)};
  EXPECT_EQ(Place(kSmall, prefills, decodes).prefill, 1u);
  prefills[0].queued_tokens = 63;
  EXPECT_EQ(Place(kSmall, prefills, decodes).prefill, 0u);
  // What fits others says nothing.
  prefills[0].fit = decodes[1].fit = 1;
  EXPECT_EQ(Place(kSmall, prefills, decodes).prefill, 2u) << "64 tokens at 40/s, not 128";
}

TEST(PlacementTest, EqualsAreSpreadBySaltAndEachSaltIsDecided) {
  const std::vector<WorkerView> prefills = {Prefill(), Prefill()};
  const std::vector<WorkerView> decodes = {Decode(), Decode(), Decode()};
  std::set<std::pair<size_t, size_t>> seen;
  for (uint64_t salt = 0; salt < 200; ++salt) {
    PlacementRequest request = kSmall;
    request.salt = salt;
    const Placement once = Place(request, prefills, decodes);
    const Placement again = Place(request, prefills, decodes);
    EXPECT_EQ(once.prefill, again.prefill);
    EXPECT_EQ(once.decode, again.decode);
    seen.emplace(once.prefill, once.decode);
  }
  EXPECT_EQ(seen.size(), 6u);
}

TEST(PlacementTest, WaitsForRoomSlotsAndWorkersThatFailedJustNow) {
  const std::vector<WorkerView> prefills = {Prefill()};
  std::vector<WorkerView> decodes = {Decode(7)};
  EXPECT_EQ(Place(kSmall, prefills, decodes).kind, Kind::kWait) << "8 blocks wanted, 7 free";
  decodes = {Decode()};
  decodes[0].running = 16;
  EXPECT_EQ(Place(kSmall, prefills, decodes).kind, Kind::kWait) << "no slot in the batch";
  decodes = {Decode()};
  decodes[0].avoid = true;
  EXPECT_EQ(Place(kSmall, prefills, decodes).kind, Kind::kWait) << "it failed just now";
}

// The request is of one kind, the workers are busy, and each is too small in its own way.
void ExpectNever(const PlacementRequest& request, const std::vector<WorkerView>& prefills,
                 const std::vector<WorkerView>& decodes, const Excess& excess) {
  const Placement p = Place(request, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kNeverFits);
  EXPECT_EQ(p.excess.kind, excess.kind);
  EXPECT_EQ(p.excess.limit, excess.limit);
  EXPECT_EQ(p.excess.needed, excess.needed);
}

TEST(PlacementTest, SaysWhatCanNeverBe) {
  const std::vector<WorkerView> prefills = {Prefill(1000000)};
  const std::vector<WorkerView> decodes = {Decode(0, 4), Decode(0, 9)};
  WorkerView tiny = Prefill();
  tiny.blocks_total = 3;
  ExpectNever(kSmall, {tiny}, decodes, {Excess::Kind::kPrompt, 48, 64});
  PlacementRequest request = kSmall;
  request.tokens_to_come = 100;
  ExpectNever(request, prefills, decodes, {Excess::Kind::kTokens, 144, 164});
  request = kSmall;
  request.choices = 17;
  ExpectNever(request, prefills, decodes, {Excess::Kind::kChoices, 16, 17});
  request.choices = 2;
  ExpectNever(request, prefills, decodes, {Excess::Kind::kBlocks, 9, 12});
  EXPECT_EQ(Place(kSmall, prefills, decodes).kind, Kind::kWait) << "one is large enough";
  EXPECT_EQ(Place(kSmall, {}, decodes).kind, Kind::kNoPair);
  EXPECT_EQ(Place(kSmall, prefills, {}).kind, Kind::kNoPair);
}

// It would end the request for good where another can serve it.
TEST(PlacementTest, AWorkerThatIsTooSmallIsNotAsked) {
  PlacementRequest request = kSmall;
  request.tokens_to_come = 1000;  // a grant of 256 fits both
  WorkerView small = Prefill();
  small.blocks_total = 3;
  const std::vector<WorkerView> prefills = {small, Prefill(4000)};
  const std::vector<WorkerView> decodes = {Decode(60, 60), Decode(40, 100)};
  const Placement p = Place(request, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kPair);
  EXPECT_EQ(p.prefill, 1u);
  EXPECT_EQ(p.decode, 1u);
}

TEST(PlacementTest, ChoicesShareThePromptsFullBlocks) {
  PlacementRequest request = kSmall;
  request.prompt_tokens = 40;  // 2.5 blocks
  request.tokens_to_come = 10;
  EXPECT_EQ(GrantBlocks(request, Decode()), 4);
  request.choices = 3;
  EXPECT_EQ(GrantBlocks(request, Decode()), 2 + 3 * 2);
}

TEST(PlacementTest, AGrantIsWhatTheDecodeWorkerPromises) {
  PlacementRequest request = kSmall;
  request.tokens_to_come = 1000;
  WorkerView modest = Decode(8);
  modest.grant_output_tokens = 64;
  EXPECT_EQ(GrantBlocks(request, modest), 8);
  WorkerView generous = Decode(20);
  generous.grant_output_tokens = 512;
  EXPECT_EQ(GrantBlocks(request, generous), 4 + 32);
  const std::vector<WorkerView> prefills = {Prefill()};
  const std::vector<WorkerView> decodes = {generous, modest};
  const Placement p = Place(request, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kPair);
  EXPECT_EQ(p.decode, 1u) << "fewer blocks, but enough for its own promise";
  request.tokens_to_come = 32;
  EXPECT_EQ(GrantBlocks(request, generous), 6) << "no more than is to come";
}

TEST(PlacementTest, ARepeatedVictimIsPlacedWhereAllOfItFits) {
  PlacementRequest request = kSmall;
  request.tokens_to_come = 1000;
  request.promise_all = true;
  EXPECT_EQ(GrantBlocks(request, Decode()), 67);
  const std::vector<WorkerView> prefills = {Prefill()};
  const std::vector<WorkerView> decodes = {Decode(60), Decode(70, 400)};
  EXPECT_EQ(Place(request, prefills, decodes).decode, 1u) << "emptier, but too small for all";
}

// What a full worker has just let go of is not enough to come back to it.
TEST(PlacementTest, AResumeLeavesTheWatermarkUnlessItIsAlone) {
  const std::vector<WorkerView> prefills = {Prefill()};
  std::vector<WorkerView> decodes = {Decode(12)};
  decodes[0].resume_watermark = 5;
  PlacementRequest request = kSmall;
  EXPECT_EQ(Place(request, prefills, decodes).kind, Kind::kPair) << "a new one needs 8";
  request.resumed = true;
  EXPECT_EQ(Place(request, prefills, decodes).kind, Kind::kWait) << "and a resume 13";
  decodes[0].blocks_free = 13;
  EXPECT_EQ(Place(request, prefills, decodes).kind, Kind::kPair);
  decodes[0].blocks_total = decodes[0].blocks_free = 12;
  EXPECT_EQ(Place(request, prefills, decodes).kind, Kind::kPair) << "nobody else is there";
}

TEST(PlacementTest, PairsOnlyWorkersThatFit) {
  std::vector<WorkerView> prefills = {Prefill(), Prefill(5000)};
  std::vector<WorkerView> decodes = {Decode()};
  prefills[0].fit = 1;
  const Placement p = Place(kSmall, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kPair);
  EXPECT_EQ(p.prefill, 1u) << "slower, but of the same model";
  prefills[1].fit = 1;
  EXPECT_EQ(Place(kSmall, prefills, decodes).kind, Kind::kNoPair);
}

// Both are well, and the way between them is not.
TEST(PlacementTest, APairThatIsCutIsPassedOver) {
  std::vector<WorkerView> prefills = {Prefill(), Prefill(5000)};
  std::vector<WorkerView> decodes = {Decode(), Decode(50)};
  prefills[0].unreached = {0};
  Placement p = Place(kSmall, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kPair);
  EXPECT_EQ(p.prefill, 0u);
  EXPECT_EQ(p.decode, 1u) << "fuller, but reached";
  decodes[1].avoid = true;
  p = Place(kSmall, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kPair);
  EXPECT_EQ(p.prefill, 1u) << "it reaches the one that has room";
  EXPECT_EQ(p.decode, 0u);
  prefills[1].unreached = {0};
  EXPECT_EQ(Place(kSmall, prefills, decodes).kind, Kind::kWait);
}

TEST(PlacementTest, ACutPairOfOneModelLeavesThoseOfAnother) {
  std::vector<WorkerView> prefills = {Prefill(), Prefill(3000)};
  std::vector<WorkerView> decodes = {Decode(), Decode(50)};
  prefills[1].fit = decodes[1].fit = 1;
  prefills[0].unreached = {0};
  const Placement p = Place(kSmall, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kPair);
  EXPECT_EQ(p.prefill, 1u);
  EXPECT_EQ(p.decode, 1u);
}

TEST(PlacementTest, ARetryGoesByAPrefillThatReachesItsDecode) {
  std::vector<WorkerView> prefills = {Prefill(), Prefill(5000)};
  const std::vector<WorkerView> decodes = {Decode(), Decode()};
  PlacementRequest retry = kSmall;
  retry.decode = 1;
  prefills[0].unreached = {1};
  EXPECT_EQ(Place(retry, prefills, decodes).prefill, 1u);
  prefills[1].queued = kPrefillDepth;
  EXPECT_EQ(Place(retry, prefills, decodes).kind, Kind::kWait) << "it is busy now";
  prefills[1].unreached = {0, 1};
  EXPECT_EQ(Place(retry, prefills, decodes).kind, Kind::kCutOff);
}

TEST(PlacementTest, ARetryKeepsItsDecodeHoweverFull) {
  const std::vector<WorkerView> prefills = {Prefill()};
  const std::vector<WorkerView> decodes = {Decode(), Decode(0)};
  PlacementRequest retry = kSmall;
  retry.decode = 1;
  const Placement p = Place(retry, prefills, decodes);
  EXPECT_EQ(p.kind, Kind::kPair);
  EXPECT_EQ(p.decode, 1u);
}

}  // namespace
}  // namespace setu::router
