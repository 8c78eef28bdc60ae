// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "tests/support/wait_until.h"

namespace setu::test {
namespace {

std::optional<double> SumOf(const std::string& page, const std::string& metric,
                            const std::string& label = "") {
  std::optional<double> sum;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(page, '\n'))) {
    if (!line.starts_with(metric) || line.find(label) == std::string::npos) continue;
    const std::string rest = line.substr(metric.size());
    if (rest.empty() || (rest[0] != ' ' && rest[0] != '{')) continue;
    double value = 0;
    if (absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) sum = sum.value_or(0) + value;
  }
  return sum;
}

int PortOf(const std::string& address) {
  int port = 0;
  SETU_CHECK(absl::SimpleAtoi(address.substr(address.find(':') + 1), &port),
             "an address ends in a port");
  return port;
}

bool ConnectTo(int port, const rpc::Descriptor& socket) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  return connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
}

// Body of a plain HTTP GET of a port of the loopback; empty where it fails or takes over a second.
std::string HttpGet(int port, const rpc::Descriptor& socket, const std::string& path) {
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const std::string ask =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::string answer;
  if (ConnectTo(port, socket) &&
      write(socket.get(), ask.data(), ask.size()) == static_cast<ssize_t>(ask.size())) {
    char piece[4096];
    for (ssize_t n; (n = read(socket.get(), piece, sizeof piece)) > 0;) answer.append(piece, n);
  }
  const size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

}  // namespace

std::string ProcessCluster::HoldAddress(const std::string& host) {
  auto port = cli::HeldPort::Take();
  SETU_CHECK(port.ok(), "the loopback has a free port");
  ports_.push_back(*std::move(port));
  return absl::StrCat(host, ":", ports_.back().number());
}

void ProcessCluster::Run(const std::string& name, absl::FunctionRef<void()> act) const {
  if (lan_ == nullptr) return act();
  lan_->Run(name, act);
}

rpc::Descriptor ProcessCluster::SocketAt(const std::string& name) const {
  rpc::Descriptor opened(-1);
  Run(name, [&] { opened = rpc::Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); });
  return opened;
}

ProcessCluster::ProcessCluster(const Options& options) : lan_(options.lan) {
  std::vector<std::string> prefill, decode;
  for (int i = 0; i < options.decode_workers; ++i) {
    decode.push_back(
        AddWorker(absl::StrCat("decode-", i), "setu-decode", options.decode_flags, options));
  }
  for (int i = 0; i < options.prefill_workers; ++i) {
    prefill.push_back(
        AddWorker(absl::StrCat("prefill-", i), "setu-prefill", options.prefill_flags, options));
  }
  address_ = HoldAddress();
  std::vector<std::string> flags = {"--decode", absl::StrJoin(decode, ",")};
  if (!prefill.empty()) flags.insert(flags.end(), {"--prefill", absl::StrJoin(prefill, ",")});
  flags.insert(flags.end(), options.router_flags.begin(), options.router_flags.end());
  Add("router", "setu-router", address_, flags, options.model);
  for (const auto& [name, member] : members_) Start(name);
  stub_ = v1::InferenceService::NewStub(Connect());
}

// gRPC opens its sockets where it likes, so one that is elsewhere is opened for it, and stays.
std::shared_ptr<grpc::Channel> ProcessCluster::Connect() const {
  if (lan_ == nullptr) return grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  rpc::Descriptor connected(-1);
  const bool listens = WaitUntil(std::chrono::seconds(60), [&] {
    rpc::Descriptor tried = SocketAt("router");
    if (!ConnectTo(PortOf(address_), tried)) return false;
    connected = std::move(tried);
    return true;
  });
  SETU_CHECK(listens, "a router that starts listens");
  fcntl(connected.get(), F_SETFL, O_NONBLOCK);
  return grpc::CreateInsecureChannelFromFd("router", connected.Release());
}

void ProcessCluster::Add(const std::string& name, const std::string& binary,
                         const std::string& listen, const std::vector<std::string>& flags,
                         const std::string& model) {
  Member& member = members_[name];
  const std::string metrics = HoldAddress();
  member.listen = listen;
  member.metrics_port = PortOf(metrics);
  member.arguments = {absl::StrCat(SETU_BINARY_DIR "/", binary),
                      "--model",
                      model,
                      "--listen",
                      listen,
                      "--metrics-listen",
                      metrics};
  member.arguments.insert(member.arguments.end(), flags.begin(), flags.end());
}

// Returns where the others reach it.
std::string ProcessCluster::AddWorker(const std::string& name, const std::string& binary,
                                      const std::vector<std::string>& flags,
                                      const Options& options) {
  const std::string listen = lan_ == nullptr ? HoldAddress() : HoldAddress(lan_->AddressOf(name));
  Add(name, binary, listen, flags, options.model);
  if (options.reach) return options.reach(name, listen);
  if (!options.watch) return listen;
  const auto watch = [name, watch = options.watch](const GrpcProxy::Message& message) {
    return watch(name, message);
  };
  proxies_.push_back(std::make_unique<GrpcProxy>(listen, watch));
  return proxies_.back()->address();
}

bool ProcessCluster::WaitReady(std::chrono::seconds limit) {
  const bool ready = WaitUntil(limit, [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
    // A call that fails at once leaves connecting to gRPC's backup poller, every 5 s.
    context.set_wait_for_ready(true);
    v1::ListModelsResponse response;
    const grpc::Status status = stub_->ListModels(&context, {}, &response);
    return status.ok() && response.models_size() > 0 && response.models(0).ready();
  });
  if (ready) Grown();  // from now on
  return ready;
}

void ProcessCluster::Start(const std::string& name) {
  Member& member = members_.at(name);
  Run(name, [&] {
    auto process = cli::Process::Start(member.arguments);
    SETU_CHECK(process.ok(), "the binaries are built");
    member.process.emplace(*std::move(process));
  });
}

bool ProcessCluster::StartAgain(const std::string& name) {
  const std::string role = name.substr(0, name.find('-'));
  if (!WaitSeen(role)) return false;
  Start(name);
  return WaitSeen(role);
}

bool ProcessCluster::WaitSeen(const std::string& role) const {
  return WaitUntil(std::chrono::seconds(5), [&] { return Seen(role); });
}

bool ProcessCluster::Seen(const std::string& role) const {
  const auto runs = std::count_if(members_.begin(), members_.end(), [&](const auto& member) {
    return member.first.starts_with(role) && member.second.process;
  });
  const std::string gauge = absl::StrCat("setu_", role, "_workers");
  return Metric("router", gauge) == runs;
}

void ProcessCluster::Kill(const std::string& name) { members_.at(name).process.reset(); }

void ProcessCluster::Signal(const std::string& name, int signal) {
  members_.at(name).process->Signal(signal);
}

std::optional<std::string> ProcessCluster::WaitEnd(const std::string& name,
                                                   std::chrono::seconds limit) {
  Member& member = members_.at(name);
  std::optional<cli::ProcessEnd> end;
  if (!WaitUntil(limit, [&] { return (end = member.process->Ended()).has_value(); })) {
    return std::nullopt;
  }
  member.process.reset();
  return end->Text();
}

pid_t ProcessCluster::pid(const std::string& name) const {
  return members_.at(name).process->pid();
}

std::optional<double> ProcessCluster::Metric(const std::string& name, const std::string& metric,
                                             const std::string& label) const {
  return SumOf(MetricsPage(name), metric, label);
}

std::string ProcessCluster::MetricsPage(const std::string& name) const {
  return HttpGet(members_.at(name).metrics_port, SocketAt(name), "/metrics");
}

std::string ProcessCluster::Quiesce(std::chrono::seconds limit) {
  std::string held;
  WaitUntil(limit, [&] { return (held = Held() + Grown()).empty(); });
  return held;
}

std::string ProcessCluster::Held() const {
  std::string held;
  for (const auto& [name, member] : members_) {
    if (!member.process) continue;
    const std::string page = MetricsPage(name);
    if (page.empty()) absl::StrAppend(&held, name, ": no answer; ");
    const auto value = [&](absl::string_view metric) {
      return SumOf(page, std::string(metric)).value_or(0);
    };
    for (const char* gauge : {"setu_num_requests_running", "setu_num_requests_waiting",
                              "setu_sequences_running", "setu_queued_tokens", "setu_kv_blocks_held",
                              "setu_kv_blocks_promised", "setu_kv_transfers_running"}) {
      if (value(gauge) != 0) absl::StrAppend(&held, name, ": ", value(gauge), " ", gauge, "; ");
    }
    const double free = value("setu_kv_blocks") - value("setu_kv_blocks_cached");
    if (free < 0) absl::StrAppend(&held, name, ": caches more blocks than it has; ");
    const double without_end =
        value("setu_requests_admitted_total") - value("setu_requests_finished_total") -
        value("setu_requests_failed_total") - value("setu_requests_cancelled_total");
    if (without_end != 0) {
      absl::StrAppend(&held, name, ": ", without_end, " requests without an end; ");
    }
  }
  return held;
}

// By descriptors or threads. Each process may open a connection to each of the others once, and
// gRPC's threads come with load. One that still starts is looked at when the router counts on all.
std::string ProcessCluster::Grown() {
  constexpr long kMoreThreads = 8;
  const auto links = static_cast<long>(members_.size());
  std::string grown;
  for (const auto& [name, member] : members_) {
    if (!member.process) continue;
    const bool known = at_rest_.contains(pid(name));
    if (!known && !(Seen("prefill") && Seen("decode"))) continue;
    const Vitals now = VitalsOf(pid(name));
    const Vitals then = at_rest_.try_emplace(pid(name), now).first->second;
    if (now.descriptors > then.descriptors + links) {
      absl::StrAppend(&grown, name, ": ", now.descriptors, " descriptors after ", then.descriptors,
                      "; ");
    }
    if (now.threads > then.threads + kMoreThreads) {
      absl::StrAppend(&grown, name, ": ", now.threads, " threads after ", then.threads, "; ");
    }
  }
  return grown;
}

}  // namespace setu::test
