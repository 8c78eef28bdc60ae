// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/router_node.h"

#include <map>
#include <utility>

#include "common/logging/logger.h"
#include "common/rpc/event_loop.h"
#include "services/router/dispatcher.h"
#include "services/router/readiness.h"
#include "tests/simulator/router_calls.h"

namespace setu::simulator {
namespace {

constexpr uint64_t kTokenizer = 1;  // HashRunner's fingerprint has it too

router::DirectoryOptions DirectoryFor(const Nodes& nodes, const RouterSetup& setup) {
  router::DirectoryOptions options;
  for (const auto& [address, node] : nodes.prefill) options.prefill.push_back(address);
  for (const auto& [address, node] : nodes.decode) options.decode.push_back(address);
  options.local_prefill = setup.local_prefill;
  return options;
}

}  // namespace

// What Router::Owned has, and its admission.
struct RouterNode::Process {
  struct Owned {
    explicit Owned(Process& process)
        : directory(
              process.loop, process.calls, process.logger,
              DirectoryFor(process.node.nodes_, process.node.setup_), kTokenizer,
              [this] { Changed(); }, [this] { dispatcher.Kick(); }),
          health(process.loop, process.logger, router::Circuit::Times(), /*seed=*/0,
                 [this] { dispatcher.Kick(); }),
          dispatcher(process.loop, directory, health, process.node.setup_.queue, [] {}),
          readiness(
              process.loop, [] {}, [](bool) {}),
          services{process.loop,  dispatcher,
                   health,        readiness,
                   process.calls, process.node.tokenizer_,
                   process.model, process.node.setup_.flow,
                   counts,        observer} {}
    void Changed() {
      readiness.PairsChanged(directory.Usable().HasPair());
      dispatcher.Kick();
    }

    router::FlowCounts counts;
    router::FlowObserver observer;
    router::WorkerDirectory directory;
    router::WorkerHealth health;
    router::Dispatcher dispatcher;
    router::Readiness readiness;
    const router::FlowServices services;
    std::map<uint64_t, std::shared_ptr<router::RequestFlow>> flows;
    uint64_t next_id = 0;
  };

  explicit Process(RouterNode& owner)
      : node(owner),
        loop(owner, 4096),
        calls(owner.network_, owner, loop, owner.nodes_),
        owned(std::make_unique<Owned>(*this)) {}

  // As Router::Stop: all coroutines end before what they use.
  ~Process() {
    dying = true;
    const auto running = owned->flows;
    for (const auto& [id, flow] : running) {
      flow->Cancel(absl::UnavailableError("the router has died"));
    }
    TurnToTheEnd();
    owned = nullptr;
    TurnToTheEnd();
  }

  void TurnToTheEnd() {
    while (loop.Turn()) {
    }
  }

  // As Router::Admit, quotas apart.
  absl::Status Check(const router::Arrival& arrival, const router::PlacementRequest& size) const {
    const router::Dispatcher& dispatcher = owned->dispatcher;
    if (dying) return absl::UnavailableError("the router has died");
    if (!owned->directory.Usable().HasPair()) return owned->directory.NoPair();
    if (absl::Status fits = dispatcher.CheckFits(size); !fits.ok()) return fits;
    if (dispatcher.FullFor(arrival.share)) return absl::ResourceExhaustedError("the queue is full");
    return dispatcher.CheckInTime(arrival.share, arrival.deadline);
  }
  void Generate(router::Arrival arrival, router::ValidRequest request,
                std::shared_ptr<router::ClientSink> sink,
                const std::function<void(std::weak_ptr<router::RequestFlow>)>& admitted) {
    const router::PlacementRequest size = router::SizeOf(request, 0, request.choices());
    if (absl::Status ok = Check(arrival, size); !ok.ok()) {
      router::FlowEnd end;
      end.status = std::move(ok);
      return sink->End(end);
    }
    const uint64_t id = owned->next_id++;
    const int64_t expected = router::ExpectedWork(size);
    auto ended = [this, id, expected, share = arrival.share,
                  prompt = size.prompt_tokens](const router::FlowEnd& end) {
      int64_t tokens = prompt;
      for (const int32_t last : end.last_index) tokens += last + 1;
      if (end.placed) owned->dispatcher.Settle(share, tokens - expected);
      owned->flows.erase(id);
    };
    const auto flow = router::RequestFlow::Start(owned->services, std::move(arrival),
                                                 std::move(request), std::move(sink), ended);
    owned->flows[id] = flow;
    admitted(flow);
  }

  RouterNode& node;
  NullLogger logger;
  const std::string model = "hash";
  rpc::EventLoop loop;
  RouterCalls calls;
  bool dying = false;
  std::unique_ptr<Owned> owned;
};

RouterNode::RouterNode(Timeline& timeline, Network& network, const Nodes& nodes,
                       std::string address, const RouterSetup& setup)
    : Node(timeline, std::move(address)), network_(network), nodes_(nodes), setup_(setup) {}

RouterNode::~RouterNode() = default;

void RouterNode::Generate(router::Arrival arrival, router::ValidRequest request,
                          std::shared_ptr<router::ClientSink> sink,
                          std::function<void(std::weak_ptr<router::RequestFlow>)> admitted) {
  process_->loop.PostCompletion([process = process_.get(), arrival = std::move(arrival),
                                 request = std::move(request), sink = std::move(sink),
                                 admitted = std::move(admitted)]() mutable {
    process->Generate(std::move(arrival), std::move(request), std::move(sink), admitted);
  });
  Wake();
}

std::optional<RouterFigures> RouterNode::Figures() const {
  if (process_ == nullptr) return std::nullopt;
  RouterFigures figures;
  figures.queued = process_->owned->dispatcher.queue_length();
  figures.running = static_cast<int32_t>(process_->owned->flows.size());
  for (const auto& listing : process_->owned->directory.All()) {
    if (listing.worker == nullptr) continue;
    const router::Claimed& claimed = listing.worker->claimed;
    figures.claimed.blocks += claimed.blocks;
    figures.claimed.sequences += claimed.sequences;
    figures.claimed.tokens += claimed.tokens;
    figures.claimed.prompts += claimed.prompts;
  }
  return figures;
}

const router::Workers* RouterNode::workers() const {
  return process_ == nullptr ? nullptr : &process_->owned->directory.Usable();
}

const router::FlowCounts* RouterNode::counts() const {
  return process_ == nullptr ? nullptr : &process_->owned->counts;
}

void RouterNode::StartProcess() { process_ = std::make_unique<Process>(*this); }

void RouterNode::EndProcess() { process_ = nullptr; }

bool RouterNode::Turn() {
  process_->TurnToTheEnd();
  return false;
}

std::optional<TimePoint> RouterNode::next_timer() const { return process_->loop.next_timer(); }

}  // namespace setu::simulator
