// SPDX-License-Identifier: Apache-2.0
// What tenants are promised by the queue, over many seeds: shares of the work, a wait that others'
// load does not lengthen, an end to every wait. By counts of turns and of tokens, and a clock that
// the test turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <random>

#include "services/router/admission_queue.h"

namespace setu::router {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kStart{hours(1)};
const TimePoint kNever = kStart + hours(1000);
constexpr int kSeeds = 50;

struct Job {
  Share share;
  int64_t work = 1;
};

AdmissionQueue::Config Roomy() {
  return {.capacity = 100000, .queue_timeout = hours(100), .resume_timeout = hours(100)};
}

// While two tenants both wait, whatever the window: what each has had for its weight differs by no
// more than the largest job of each.
TEST(AdmissionFairness, TenantsThatWaitHaveWorkByTheirWeights) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    const size_t tenants = 2 + random() % 4;
    std::vector<Share> shares;
    for (uint32_t t = 0; t < tenants; ++t) {
      shares.push_back({.tenant = t, .weight = 1 + static_cast<uint32_t>(random() % 4)});
    }
    AdmissionQueue queue(Roomy());
    std::map<uint64_t, Job> jobs;
    for (uint64_t i = 0; i < 300; ++i) {
      const Job job{shares[random() % tenants], 1 + static_cast<int64_t>(random() % 500)};
      ASSERT_TRUE(queue.Push(i, job.share, job.work, kStart, kNever));
      jobs[i] = job;
    }
    // had[k][t]: by tenant t before turn k, for its weight; only while all wait.
    std::vector<std::vector<double>> had = {std::vector<double>(tenants, 0)};
    std::vector<size_t> waiting(tenants);
    for (const auto& [request, job] : jobs) ++waiting[job.share.tenant];
    while (std::all_of(waiting.begin(), waiting.end(), [](size_t n) { return n > 0; })) {
      const Job& job = jobs.at(queue.Take(queue.Turns(kStart)[0].ticket, kStart));
      had.push_back(had.back());
      had.back()[job.share.tenant] += static_cast<double>(job.work) / job.share.weight;
      --waiting[job.share.tenant];
    }
    for (size_t from = 0; from < had.size(); ++from) {
      for (size_t to = from; to < had.size(); ++to) {
        for (size_t a = 0; a < tenants; ++a) {
          for (size_t b = 0; b < tenants; ++b) {
            const double more = (had[to][a] - had[from][a]) - (had[to][b] - had[from][b]);
            ASSERT_LE(more, 500.0 / shares[a].weight + 500.0 / shares[b].weight + 1e-6)
                << "seed " << seed;
          }
        }
      }
    }
  }
}

// A place to run jobs, fed by a queue: `slots` units of room, of which each job takes some for as
// long as it has work.
class Server {
 public:
  struct Started {
    TimePoint arrived;
    TimePoint started;
    size_t others = 0;  // jobs of other tenants that started meanwhile
  };

  Server(const AdmissionQueue::Config& config, int slots) : queue_(config), free_(slots) {}

  void Arrive(TimePoint now, const Job& job, int room = 1) {
    RunUntil(now);
    const uint64_t id = next_++;
    waiting_[id] = {job, room, now, started_by_others(job.share.tenant)};
    ASSERT_TRUE(queue_.Push(id, job.share, job.work, now, kNever));
    StartAll(now);
  }
  void RunUntil(TimePoint until) {
    while (!ends_.empty() && ends_.top().first <= until) {
      const auto [now, room] = ends_.top();
      ends_.pop();
      free_ += room;
      StartAll(now);
    }
  }
  // Of those of one tenant, in the order of their starts.
  const std::vector<Started>& started(uint32_t tenant) { return started_[tenant]; }
  size_t waiting() const { return waiting_.size(); }
  bool Idle() const { return free_ > 0 && !waiting_.empty(); }

 private:
  struct Waiting {
    Job job;
    int room = 1;
    TimePoint arrived;
    size_t others = 0;
  };
  size_t started_by_others(uint32_t tenant) { return total_ - started_[tenant].size(); }
  void StartAll(TimePoint now) {
    for (bool went = true; went;) {
      went = false;
      for (const AdmissionQueue::Turn& turn : queue_.Turns(now)) {
        const Waiting job = waiting_.at(turn.request);
        if (job.room > free_) continue;
        queue_.Take(turn.ticket, now);
        waiting_.erase(turn.request);
        free_ -= job.room;
        ends_.emplace(now + milliseconds(job.job.work), job.room);
        const uint32_t tenant = job.job.share.tenant;
        started_[tenant].push_back({job.arrived, now, started_by_others(tenant) - job.others});
        ++total_;
        went = true;
        break;
      }
    }
  }

  AdmissionQueue queue_;
  int free_;
  std::map<uint64_t, Waiting> waiting_;
  using End = std::pair<TimePoint, int>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::map<uint32_t, std::vector<Started>> started_;
  size_t total_ = 0;
  uint64_t next_ = 0;
};

// The quiet tenant's jobs, alone or beside a tenant that offers twenty times as much.
std::vector<Server::Started> Quiet(uint32_t seed, bool beside_flood) {
  std::mt19937 random(seed);
  Server server(Roomy(), /*slots=*/8);
  std::exponential_distribution<double> gap(1 / 160.0);  // of 100 ms jobs: an eighth of the room
  double at = 0;
  for (int i = 0; i < 200; ++i) {
    const double next = at + gap(random);
    for (int f = 0; beside_flood && f < 20; ++f) {
      const double when = at + (next - at) * f / 20;
      server.Arrive(kStart + milliseconds(static_cast<int64_t>(when)),
                    {{.tenant = 2}, 50 + static_cast<int64_t>(f * 5)});
    }
    at = next;
    server.Arrive(kStart + milliseconds(static_cast<int64_t>(at)), {{.tenant = 1}, 100});
  }
  server.RunUntil(kNever);
  return server.started(1);
}

TEST(AdmissionFairness, ATwentyfoldFloodLeavesTheOthersWaitNearWhatItIsAlone) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const auto alone = Quiet(seed, false);
    const auto beside = Quiet(seed, true);
    ASSERT_EQ(alone.size(), beside.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      const Duration more =
          (beside[i].started - beside[i].arrived) - (alone[i].started - alone[i].arrived);
      // A slot comes free; then it is first, or behind those of its own that came at the same time.
      ASSERT_LE(more, milliseconds(145)) << "seed " << seed << " job " << i;
      size_t own = 0;
      for (size_t j = 0; j < i; ++j) own += beside[j].started > beside[i].arrived ? 1 : 0;
      ASSERT_LE(beside[i].others, 2 * (own + 1)) << "seed " << seed << " job " << i;
    }
  }
}

TEST(AdmissionFairness, NoRoomIsLeftUnusedWhileSomebodyWaits) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    Server server(Roomy(), 4);
    TimePoint now = kStart;
    for (int i = 0; i < 300; ++i) {
      now += milliseconds(random() % 60);
      const Share share{.tenant = static_cast<uint32_t>(random() % 3),
                        .priority = static_cast<Priority>(random() % kPriorities)};
      server.Arrive(now, {share, 1 + static_cast<int64_t>(random() % 400)});
      ASSERT_FALSE(server.Idle()) << "seed " << seed;
    }
    server.RunUntil(kNever);
    EXPECT_EQ(server.waiting(), 0u);
  }
}

// Small jobs of two tenants take all room as it comes; one of a third needs most of it at once.
TEST(AdmissionFairness, ABigPromptIsNotPassedForEver) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    AdmissionQueue::Config config = Roomy();
    config.age_bound = seconds(5);
    Server server(config, 8);
    TimePoint now = kStart;
    for (int i = 0; i < 3000; ++i) {
      now += milliseconds(5);
      if (i == 200) server.Arrive(now, {{.tenant = 3}, 1000}, /*room=*/7);
      server.Arrive(now, {{.tenant = 1 + static_cast<uint32_t>(random() % 2)},
                          20 + static_cast<int64_t>(random() % 80)});
    }
    ASSERT_EQ(server.started(3).size(), 1u) << "seed " << seed;
    const Server::Started& big = server.started(3)[0];
    EXPECT_LE(big.started - big.arrived, config.age_bound + milliseconds(100));
    EXPECT_GT(big.others, 500u) << "others went before, where it found no room";
  }
}

// The other way round: big jobs wait for room all the time, and small ones go between.
TEST(AdmissionFairness, SmallPromptsDoNotWaitForTheBigOnesOfOthers) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    Server server(Roomy(), 8);
    TimePoint now = kStart;
    for (int i = 0; i < 400; ++i) {
      now += milliseconds(50);
      server.Arrive(now, {{.tenant = 1}, 900 + static_cast<int64_t>(random() % 200)}, 7);
      if (i % 4 == 0) server.Arrive(now, {{.tenant = 2}, 20});
    }
    ASSERT_GE(server.started(2).size(), 99u) << "seed " << seed;
    for (const Server::Started& small : server.started(2)) {
      EXPECT_LE(small.others, 1u) << "seed " << seed;
    }
  }
}

TEST(AdmissionFairness, ALowPriorityWaitsNoLongerThanTheAgeBoundAndItsTurn) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    AdmissionQueue::Config config = Roomy();
    config.age_bound = seconds(5);
    Server server(config, 2);
    TimePoint now = kStart;
    for (int i = 0; i < 2000; ++i) {
      now += milliseconds(10);
      if (i == 100) server.Arrive(now, {{.tenant = 9, .priority = Priority::kLow}, 50});
      const Share high{.tenant = static_cast<uint32_t>(random() % 3), .priority = Priority::kHigh};
      server.Arrive(now, {high, 40 + static_cast<int64_t>(random() % 40)});
    }
    ASSERT_EQ(server.started(9).size(), 1u) << "seed " << seed;
    const Server::Started& low = server.started(9)[0];
    EXPECT_GE(low.started - low.arrived, config.age_bound) << "until then priority is strict";
    EXPECT_LE(low.started - low.arrived, config.age_bound + milliseconds(80)) << "seed " << seed;
  }
}

TEST(AdmissionFairness, EqualCallsHaveEqualAnswers) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const auto turns = [seed] {
      std::mt19937 random(seed);
      AdmissionQueue queue({.capacity = 16, .age_bound = seconds(1)});
      std::vector<uint64_t> seen;
      TimePoint now = kStart;
      for (uint64_t i = 0; i < 500; ++i) {
        now += milliseconds(random() % 200);
        const Share share{.tenant = static_cast<uint32_t>(random() % 5),
                          .weight = 1 + static_cast<uint32_t>(random() % 3),
                          .priority = static_cast<Priority>(random() % kPriorities)};
        const auto work = static_cast<int64_t>(random() % 300);
        const auto pushed = queue.Push(i, share, work, now, now + seconds(5));
        seen.push_back(pushed ? pushed->displaced.value_or(0) : 1);
        for (const auto& expired : queue.Expire(now)) seen.push_back(expired.request);
        if (random() % 3 == 0) queue.Settle(share, static_cast<int64_t>(random() % 100) - 50);
        const auto first = queue.Turns(now);
        for (const AdmissionQueue::Turn& turn : first) seen.push_back(turn.request);
        if (random() % 2 == 0 && !first.empty())
          seen.push_back(queue.Take(first.back().ticket, now));
      }
      return seen;
    };
    ASSERT_EQ(turns(), turns()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace setu::router
