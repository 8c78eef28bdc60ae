// SPDX-License-Identifier: Apache-2.0
#include "services/cli/top_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

v1::GetClusterResponse SomeCluster() {
  v1::GetClusterResponse cluster;
  cluster.set_model("letters");
  cluster.set_numerics("int8-g32/kv-f16/r1");
  cluster.set_running(5);
  cluster.set_queued(2);
  v1::ClusterWorker& prefill = *cluster.add_workers();
  prefill.set_name("prefill-0");
  prefill.set_state("usable");
  prefill.set_limit("compute-bound");
  prefill.set_bandwidth_share(0.04);
  prefill.set_arithmetic_share(0.613);
  prefill.set_tokens_per_second(1234.4);
  prefill.set_running(2);
  prefill.set_running_max(64);
  prefill.set_blocks_total(200);
  prefill.set_blocks_free(150);
  prefill.set_queued(3);
  prefill.set_queued_tokens(1700);
  prefill.set_kv_bytes(50'000'000);
  prefill.set_link_bytes_per_second(812e6);
  prefill.set_prefix_tokens_asked(400);
  prefill.set_prefix_tokens_known(300);
  v1::ClusterWorker& decode = *cluster.add_workers();
  decode.set_name("decode-0");
  decode.set_state("unreachable");
  return cluster;
}

TEST(TopScreen, ShowsTheClusterAndEachWorker) {
  const std::string screen = TopScreen(SomeCluster(), nullptr, 0);
  EXPECT_THAT(screen, HasSubstr("letters, int8-g32/kv-f16/r1: 5 running, 2 of them queued"));
  EXPECT_THAT(screen,
              ContainsRegex("prefill-0 +compute-bound +4 % +61 % +1234 +2/64 +25 % +75 % +1700"));
}

TEST(TopScreen, ShowsHowAWorkerStandsThatIsNotInSight) {
  EXPECT_THAT(TopScreen(SomeCluster(), nullptr, 0), ContainsRegex("decode-0 +unreachable\n"));
}

TEST(TopScreen, ShowsDrainingInPlaceOfTheLimit) {
  v1::GetClusterResponse cluster = SomeCluster();
  cluster.mutable_workers(0)->set_state("draining");
  EXPECT_THAT(TopScreen(cluster, nullptr, 0),
              AllOf(HasSubstr("draining"), Not(HasSubstr("compute-bound"))));
}

TEST(TopScreen, RatesTransfersBetweenTwoLooks) {
  const v1::GetClusterResponse before = SomeCluster();
  v1::GetClusterResponse now = before;
  now.mutable_workers(0)->set_kv_bytes(75'000'000);
  EXPECT_THAT(TopScreen(now, &before, 2.0), ContainsRegex("1700 +12.5 +812\n"));
  EXPECT_THAT(TopScreen(now, nullptr, 0), ContainsRegex("1700 +- +812\n"));
  now.add_workers()->set_name("prefill-1");
  now.mutable_workers(2)->set_kv_bytes(8'000'000);
  v1::GetClusterResponse both = now;
  both.mutable_workers(2)->set_kv_bytes(0);
  both.mutable_workers(0)->set_kv_bytes(50'000'000);
  now.mutable_workers(1)->set_kv_bytes(20'500'000);  // received: the same bytes once more
  EXPECT_THAT(TopScreen(now, &both, 2.0), HasSubstr("KV sent now: 16.5 MB/s\n"));
  EXPECT_THAT(TopScreen(now, nullptr, 0), HasSubstr("KV sent now: - MB/s\n"));
  now.mutable_workers(0)->set_kv_bytes(7);
  EXPECT_THAT(TopScreen(now, &before, 2.0), ContainsRegex("1700 +- +812\n")) << "it started anew";
}

TEST(TopScreen, SharesWhatPrefixCachesFoundOutOfWhatWasAsked) {
  v1::GetClusterResponse cluster = SomeCluster();
  EXPECT_THAT(TopScreen(cluster, nullptr, 0), HasSubstr("prefix hits: prefill 75 %, decode -;"));
  v1::ClusterWorker& second = *cluster.add_workers();
  second.set_name("prefill-1");
  second.set_prefix_tokens_asked(1600);
  cluster.mutable_workers(1)->set_prefix_tokens_asked(8);
  cluster.mutable_workers(1)->set_prefix_tokens_known(4);
  EXPECT_THAT(TopScreen(cluster, nullptr, 0), HasSubstr("prefix hits: prefill 15 %, decode 50 %;"))
      << "by tokens, not by workers";
}

TEST(TopScreen, CountsWhatTheRouterDecided) {
  v1::GetClusterResponse cluster = SomeCluster();
  v1::Decisions& decisions = *cluster.mutable_decisions();
  decisions.set_finished(120);
  decisions.set_failed(3);
  decisions.set_cancelled(4);
  decisions.set_refused(5);
  decisions.set_resumes(6);
  decisions.set_retries(7);
  decisions.set_local_prefills(8);
  EXPECT_THAT(TopScreen(cluster, nullptr, 0),
              HasSubstr("since the start: 120 finished, 3 failed, 4 cancelled, 5 refused; "
                        "6 resumes, 7 retries, 8 local prefills\n"));
}

TEST(TopScreen, SaysWhereBandwidthIsTheCaches) {
  v1::GetClusterResponse cluster = SomeCluster();
  EXPECT_THAT(TopScreen(cluster, nullptr, 0), Not(HasSubstr("*")));
  cluster.mutable_workers(0)->set_cache_resident(true);
  EXPECT_THAT(TopScreen(cluster, nullptr, 0), AllOf(HasSubstr("4 %*"), HasSubstr("of the cache")));
}

}  // namespace
}  // namespace setu::cli
