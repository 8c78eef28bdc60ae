// SPDX-License-Identifier: Apache-2.0
// A worker's Describe and WatchLoad, as common/worker/worker_service.h answers them: the first
// report at once, later ones at most one per 20 ms, at least one per second.
#ifndef SETU_TESTS_SIMULATOR_LOAD_WATCH_H_
#define SETU_TESTS_SIMULATOR_LOAD_WATCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/kv/prefix_cache.h"
#include "common/worker/prefix_feed.h"
#include "setu/worker/v1/worker.pb.h"
#include "tests/simulator/call.h"

namespace setu::simulator {

class LoadReports {
 public:
  // Of the node's process, which it does not outlive.
  LoadReports(Node& node, worker::v1::DescribeResponse description)
      : node_(node), description_(std::move(description)) {}

  void Publish(worker::v1::WatchLoadResponse report, std::span<const kv::PrefixChange> changes);
  void Watch(Answers<worker::v1::WatchLoadResponse> answers);
  const worker::v1::DescribeResponse& description() const { return description_; }

 private:
  struct Watcher {
    Answers<worker::v1::WatchLoadResponse> answers;
    std::optional<uint64_t> cursor = std::nullopt;
    uint64_t told = 0;  // sequence of its newest report
    TimePoint at = {};  // when that was
    std::optional<TimePoint> next = std::nullopt;
    bool over = false;
  };
  void Look(const std::shared_ptr<Watcher>& watcher);
  void LookAt(const std::shared_ptr<Watcher>& watcher, TimePoint when);

  Node& node_;
  const worker::v1::DescribeResponse description_;
  worker::v1::WatchLoadResponse newest_;
  worker::PrefixFeed feed_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_LOAD_WATCH_H_
