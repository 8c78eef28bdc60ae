// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/load_watch.h"

#include <utility>

namespace setu::simulator {
namespace {

constexpr Duration kShortestGap = std::chrono::milliseconds(20);
constexpr Duration kLongestGap = std::chrono::milliseconds(900);

}  // namespace

void LoadReports::Publish(worker::v1::WatchLoadResponse report,
                          std::span<const kv::PrefixChange> changes) {
  feed_.Append(changes);
  report.set_sequence(newest_.sequence() + 1);
  newest_ = std::move(report);
  std::erase_if(watchers_, [](const auto& watcher) { return watcher->over; });
  for (const auto& watcher : watchers_) LookAt(watcher, watcher->at + kShortestGap);
}

void LoadReports::Watch(Answers<worker::v1::WatchLoadResponse> answers) {
  auto watcher = std::make_shared<Watcher>(Watcher{std::move(answers)});
  watcher->answers.pipe().OnEndAtCallee([weak = std::weak_ptr(watcher)](const absl::Status&) {
    if (const auto watcher = weak.lock()) watcher->over = true;
  });
  watchers_.push_back(watcher);
  Look(watcher);
}

void LoadReports::LookAt(const std::shared_ptr<Watcher>& watcher, TimePoint when) {
  when = std::max(when, node_.Now());
  if (watcher->next && *watcher->next <= when) return;
  watcher->next = when;
  node_.At(when, [this, watcher, when] {
    if (watcher->over || watcher->next != when) return;
    watcher->next.reset();
    Look(watcher);
  });
}

void LoadReports::Look(const std::shared_ptr<Watcher>& watcher) {
  if (newest_.sequence() == 0) return LookAt(watcher, node_.Now() + kLongestGap);
  const bool due = node_.Now() >= watcher->at + kLongestGap;
  if (watcher->told != newest_.sequence() || due) {
    worker::v1::WatchLoadResponse report = newest_;
    report.set_incarnation(description_.incarnation());
    const std::optional<uint64_t> before = watcher->cursor;
    worker::v1::PrefixChanges changes = feed_.Since(watcher->cursor);
    if (watcher->cursor != before) report.mutable_prefixes()->Swap(&changes);
    watcher->told = newest_.sequence();
    watcher->at = node_.Now();
    watcher->answers.Send("load", std::move(report));
  }
  LookAt(watcher, watcher->at + kLongestGap);
}

}  // namespace setu::simulator
