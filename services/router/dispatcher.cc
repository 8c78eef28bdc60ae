// SPDX-License-Identifier: Apache-2.0
#include "services/router/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace setu::router {
namespace {

std::string Seconds(Duration d) {
  return absl::StrCat(std::chrono::duration<double>(d).count(), " s");
}

std::vector<WorkerView> ViewsOf(const std::vector<Workers::Entry>& workers, TimePoint now) {
  std::vector<WorkerView> views;
  for (const Workers::Entry& entry : workers) views.push_back(ViewOf(entry, now));
  return views;
}

absl::Status NeverFits(const Excess& excess) {
  using Kind = Excess::Kind;
  switch (excess.kind) {
    case Kind::kPrompt:
      return absl::InvalidArgumentError(
          absl::StrCat("the prompt has ", excess.needed, " tokens; it must fit ", excess.limit,
                       ", the roomiest prefill worker's pool; shorten it"));
    case Kind::kTokens:
      return absl::InvalidArgumentError(absl::StrCat(
          "the prompt and sampling.max_tokens are ", excess.needed, " tokens; they must fit ",
          excess.limit, ", the roomiest decode worker's pool; shorten the prompt or max_tokens"));
    case Kind::kChoices:
      return absl::InvalidArgumentError(absl::StrCat(
          "sampling.n is ", excess.needed, "; it must be at most ", excess.limit,
          ", the places in the roomiest decode worker's batch (--max-running); lower n"));
    case Kind::kBlocks:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the request needs ", excess.needed, " KV blocks and the roomiest decode worker has ",
      excess.limit, "; shorten the prompt, max_tokens or n"));
}

// UNAVAILABLE where circuits keep every worker of a role from new work, or let one try.
absl::Status WhyNobodyTries(const Workers& workers, TimePoint now) {
  const auto all_failed = [now](const std::vector<Workers::Entry>& entries) {
    return std::ranges::all_of(entries, [now](const Workers::Entry& entry) {
      return entry.worker->circuit.state(now) != Circuit::State::kClosed;
    });
  };
  const auto failed = [](const char* role) {
    return absl::UnavailableError(absl::StrCat("every ", role,
                                               " worker has failed and is being tried again; retry "
                                               "later, or see the router's log"));
  };
  if (all_failed(workers.decode)) return failed("decode");
  if (!workers.local_prefill && all_failed(workers.prefill)) return failed("prefill");
  return absl::OkStatus();
}

}  // namespace

int64_t ExpectedWork(const PlacementRequest& size) {
  constexpr int64_t kMostExpected = 256;  // tokens of an answer
  return size.prompt_tokens + size.choices * std::min(size.tokens_to_come, kMostExpected);
}

Dispatcher::Dispatcher(rpc::EventLoop& loop, WorkerDirectory& directory, WorkerHealth& health,
                       const AdmissionQueue::Config& config, std::function<void()> pumped)
    : loop_(loop),
      directory_(directory),
      health_(health),
      config_(config),
      pumped_(std::move(pumped)),
      queue_(config),
      alive_(std::make_shared<Dispatcher*>(this)) {}

Dispatcher::~Dispatcher() {
  if (expiry_) loop_.Cancel(*expiry_);
}

absl::Status Dispatcher::CheckFits(PlacementRequest size) const {
  const TimePoint now = loop_.clock().Now();
  const Workers& workers = directory_.Usable();
  size.local_prefill = workers.local_prefill;
  const Placement placement =
      Place(size, ViewsOf(workers.prefill, now), ViewsOf(workers.decode, now));
  if (placement.kind != Placement::Kind::kNeverFits) return absl::OkStatus();
  return NeverFits(placement.excess);
}

absl::Status Dispatcher::CheckInTime(const Share& share, TimePoint deadline) const {
  const std::optional<Duration> wait = drain_.LongestWait(queue_.Ahead(share));
  const Duration left = std::min(deadline - loop_.clock().Now(), config_.queue_timeout);
  if (!wait || *wait <= left) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a prompt waits up to ", Seconds(*wait), " now, and this one has ",
                   Seconds(left), "; retry after the delay given, or allow more time"));
}

std::optional<Dispatcher::Wait> Dispatcher::Admit(Order order) {
  const uint64_t id = next_id_++;
  const auto pushed =
      queue_.Push(id, order.share, ExpectedWork(order.size), loop_.clock().Now(), order.deadline);
  if (!pushed) return std::nullopt;
  if (pushed->displaced) {
    Answer(*pushed->displaced,
           absl::ResourceExhaustedError("the queue is full, and others hold fewer places in it; "
                                        "retry after the delay given"));
  }
  orders_.emplace(id, std::move(order));
  Kick();
  return Wait(*this, pushed->ticket, id);
}

Dispatcher::Wait Dispatcher::Resume(Order order) {
  const uint64_t id = next_id_++;
  const auto ticket =
      queue_.PushResume(id, order.share.priority, loop_.clock().Now(), order.deadline);
  orders_.emplace(id, std::move(order));
  Kick();
  return Wait(*this, ticket, id);
}

void Dispatcher::Kick() {
  if (std::exchange(kicked_, true)) return;
  loop_.PostCompletion([alive = std::weak_ptr(alive_)] {
    if (auto self = alive.lock()) (*self)->Pump();
  });
}

void Dispatcher::Pump() {
  kicked_ = false;
  ExpireDue();
  size_t left = 0;
  if (queue_.size() > 0) {
    const Workers& workers = directory_.Usable();
    while (TryNext(workers)) ++left;
  }
  drain_.Looked(loop_.clock().Now(), left, queue_.size());
  if (expiry_) loop_.Cancel(*expiry_);
  expiry_.reset();
  if (auto next = queue_.NextExpiry()) expiry_ = loop_.At(*next, [this] { Kick(); });
  pumped_();
}

// True where one left.
bool Dispatcher::TryNext(const Workers& workers) {
  const std::vector<AdmissionQueue::Turn> turns = queue_.Turns(loop_.clock().Now());
  return std::any_of(turns.begin(), turns.end(),
                     [&](const AdmissionQueue::Turn& turn) { return Try(turn, workers); });
}

// True where it left, one way or the other.
bool Dispatcher::Try(const AdmissionQueue::Turn& turn, const Workers& workers) {
  const uint64_t id = turn.request;
  const TimePoint now = loop_.clock().Now();
  Order& order = orders_.at(id);
  std::vector<WorkerView> prefills = ViewsOf(workers.prefill, now);
  std::vector<WorkerView> decodes = ViewsOf(workers.decode, now);
  SetKnown(order.prompt, directory_.prefixes(), workers, prefills, decodes);
  health_.SetUnreached(workers, prefills);
  PlacementRequest size = order.size;
  size.local_prefill = workers.local_prefill;
  size.shared = queue_.Shared(now);
  if (order.granted) {
    const auto holder = std::find_if(workers.decode.begin(), workers.decode.end(),
                                     [&](const auto& e) { return e.worker == order.granted; });
    if (holder == workers.decode.end()) {
      // Waiting for it would hold up everybody behind.
      queue_.Remove(turn.ticket);
      Answer(id, absl::AbortedError("the worker that granted room went out of sight or drains"));
      return true;
    }
    size.decode = holder - workers.decode.begin();
  }
  const Placement placement = Place(size, prefills, decodes);
  using Kind = Placement::Kind;
  if (placement.kind == Kind::kWait || placement.kind == Kind::kNoPair) return false;
  if (placement.kind == Kind::kCutOff) {
    queue_.Remove(turn.ticket);
    Answer(id, absl::AbortedError("no prefill worker reaches the one that granted room"));
    return true;
  }
  if (placement.kind == Kind::kNeverFits) {
    queue_.Remove(turn.ticket);
    Answer(id, NeverFits(placement.excess));
    return true;
  }
  queue_.Take(turn.ticket, now);
  Placed placed;
  const bool local = placement.kind == Kind::kLocal;
  const std::shared_ptr<Worker>& decode = workers.decode[placement.decode].worker;
  const std::shared_ptr<Worker>& computing =
      local ? decode : workers.prefill[placement.prefill].worker;
  const WorkerView& view = local ? decodes[placement.decode] : prefills[placement.prefill];
  placed.prefill = Claim(computing, Claimed{.tokens = TokensToCompute(size, view), .prompts = 1});
  if (!local) {
    placed.trials.prefill = health_.Try(computing);
    placed.trials.pair = health_.TryPair(*computing, *decode);
  }
  if (!order.granted) {
    placed.decode = Claim(decode, Claimed{.blocks = GrantBlocks(size, decodes[placement.decode]),
                                          .sequences = size.choices});
    placed.trials.decode = health_.Try(decode);
  }
  Answer(id, std::move(placed));
  return true;
}

void Dispatcher::ExpireDue() {
  for (const AdmissionQueue::Expired& expired : queue_.Expire(loop_.clock().Now())) {
    Answer(expired.request, WhyExpired(expired));
  }
}

absl::Status Dispatcher::WhyExpired(const AdmissionQueue::Expired& expired) const {
  const Workers& workers = directory_.Usable();
  if (!workers.HasPair()) return directory_.NoPair();
  if (absl::Status why = WhyNobodyTries(workers, loop_.clock().Now()); !why.ok()) return why;
  if (expired.reason == AdmissionQueue::Reason::kDeadline) {
    return absl::DeadlineExceededError("the deadline passed while waiting for workers");
  }
  if (expired.is_new) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room within the queue timeout of ", Seconds(config_.queue_timeout)));
  }
  return absl::UnavailableError(
      absl::StrCat("no room to resume within ", Seconds(config_.resume_timeout)));
}

void Dispatcher::Answer(uint64_t id, absl::StatusOr<Placed> result) {
  ++departures_;
  auto order = orders_.extract(id);
  order.mapped().done(std::move(result));
}

// After an answer there is nothing to take out.
void Dispatcher::Leave(const AdmissionQueue::Ticket& ticket, uint64_t id) {
  if (orders_.erase(id) == 0) return;
  queue_.Remove(ticket);
  ++departures_;
  Kick();
}

}  // namespace setu::router
