// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process_cluster.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace setu::test {
namespace {

constexpr std::chrono::milliseconds kPoll(20);

std::string FreeAddress() {
  const auto port = cli::FreePort();
  SETU_CHECK(port.ok(), "the loopback has a free port");
  return absl::StrCat("127.0.0.1:", *port);
}

}  // namespace

ProcessCluster::ProcessCluster(const Options& options) {
  std::vector<std::string> prefill, decode;
  for (int i = 0; i < options.decode_workers; ++i) {
    decode.push_back(FreeAddress());
    Add(absl::StrCat("decode-", i), "setu-decode", decode.back(), options.decode_flags,
        options.model);
  }
  for (int i = 0; i < options.prefill_workers; ++i) {
    prefill.push_back(FreeAddress());
    Add(absl::StrCat("prefill-", i), "setu-prefill", prefill.back(), options.prefill_flags,
        options.model);
  }
  address_ = FreeAddress();
  std::vector<std::string> flags = {"--prefill", absl::StrJoin(prefill, ","), "--decode",
                                    absl::StrJoin(decode, ",")};
  flags.insert(flags.end(), options.router_flags.begin(), options.router_flags.end());
  Add("router", "setu-router", address_, flags, options.model);
  stub_ = v1::InferenceService::NewStub(
      grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  for (const auto& [name, member] : members_) Start(name);
}

void ProcessCluster::Add(const std::string& name, const std::string& binary,
                         const std::string& listen, const std::vector<std::string>& flags,
                         const std::string& model) {
  Member& member = members_[name];
  const std::string metrics = FreeAddress();
  SETU_CHECK(absl::SimpleAtoi(metrics.substr(metrics.find(':') + 1), &member.metrics_port),
             "an address ends in a port");
  member.arguments = {absl::StrCat(SETU_BINARY_DIR "/", binary),
                      "--model",
                      model,
                      "--listen",
                      listen,
                      "--metrics-listen",
                      metrics};
  member.arguments.insert(member.arguments.end(), flags.begin(), flags.end());
}

bool ProcessCluster::WaitReady(std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < deadline) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
    // A call that fails at once leaves connecting to gRPC's backup poller, every 5 s.
    context.set_wait_for_ready(true);
    v1::ListModelsResponse response;
    const grpc::Status status = stub_->ListModels(&context, {}, &response);
    if (status.ok() && response.models_size() > 0 && response.models(0).ready()) return true;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

void ProcessCluster::Start(const std::string& name) {
  Member& member = members_.at(name);
  auto process = cli::Process::Start(member.arguments);
  SETU_CHECK(process.ok(), "the binaries are built");
  member.process.emplace(*std::move(process));
}

void ProcessCluster::Kill(const std::string& name) { members_.at(name).process.reset(); }

void ProcessCluster::Signal(const std::string& name, int signal) {
  members_.at(name).process->Signal(signal);
}

std::optional<std::string> ProcessCluster::WaitEnd(const std::string& name,
                                                   std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < deadline) {
    if (auto end = members_.at(name).process->Ended()) return end->Text();
    std::this_thread::sleep_for(kPoll);
  }
  return std::nullopt;
}

pid_t ProcessCluster::pid(const std::string& name) const {
  return members_.at(name).process->pid();
}

std::optional<double> ProcessCluster::Metric(const std::string& name,
                                             const std::string& metric) const {
  const std::string page = HttpGet(members_.at(name).metrics_port, "/metrics");
  std::optional<double> sum;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(page, '\n'))) {
    if (!line.starts_with(metric)) continue;
    const std::string rest = line.substr(metric.size());
    if (rest.empty() || (rest[0] != ' ' && rest[0] != '{')) continue;
    double value = 0;
    if (absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) sum = sum.value_or(0) + value;
  }
  return sum;
}

std::string HttpGet(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  const std::string ask =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
      write(fd, ask.data(), ask.size()) == static_cast<ssize_t>(ask.size())) {
    char piece[4096];
    for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0;) answer.append(piece, n);
  }
  close(fd);
  const size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

long MemoryKilobytes(pid_t pid, const std::string& field) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field + ":")) return std::stol(line.substr(field.size() + 1));
  }
  return -1;
}

}  // namespace setu::test
