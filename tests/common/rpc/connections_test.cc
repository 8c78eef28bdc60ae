// SPDX-License-Identifier: Apache-2.0
// A server whose clients open more connections than its process may have descriptors: it closes
// those beyond its bound and serves again when others have gone. The server is a process of its
// own, because its limit is lowered for good and its clients need descriptors too.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/server.h"
#include "common/worker/worker_service.h"
#include "tests/common/rpc/connect.h"

namespace setu::rpc {
namespace {

constexpr rlim_t kLimit = 160;
constexpr int kClients = 400;

void Send(int to, std::string_view text) {
  EXPECT_EQ(write(to, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// One line each, to the test.
class PipeLogger final : public Logger {
 public:
  explicit PipeLogger(int to) : to_(to) {}
  void Write(Level, std::string_view line) override { Send(to_, std::string(line) + "\n"); }

 private:
  const int to_;
};

// The child: says its port, serves until `until` ends.
int Serve(rlim_t descriptors, int tell, int until) {
  const rlimit limit{.rlim_cur = descriptors, .rlim_max = descriptors};
  setrlimit(RLIMIT_NOFILE, &limit);
  PipeLogger logger(tell);
  worker::WorkerService service({}, [] {});
  auto listener = Listener::Bind("--listen", "127.0.0.1:0");
  if (!listener.ok()) return 1;
  const int port = listener->port();
  const auto server = Server::Start({}, {&service}, *std::move(listener), logger);
  if (!server.ok()) {
    logger.Error(std::string(server.status().message()));
    return 2;
  }
  Send(tell, absl::StrCat(port, "\n"));
  char byte = 0;
  return read(until, &byte, 1) == 0 ? 0 : 3;
}

class ServerProcess {
 public:
  // Before anything of gRPC: a fork takes one thread along.
  explicit ServerProcess(rlim_t descriptors) {
    int out[2], stop[2];
    EXPECT_EQ(pipe(out), 0);
    EXPECT_EQ(pipe(stop), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(stop[1]);
      _exit(Serve(descriptors, out[1], stop[0]));
    }
    close(out[1]);
    close(stop[0]);
    out_ = Descriptor(out[0]);
    stop_ = Descriptor(stop[1]);
  }

  std::string Line() {
    std::string line;
    for (char c = 0; read(out_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  int End() {
    stop_ = Descriptor(-1);
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  Descriptor out_{-1};
  Descriptor stop_{-1};
};

// Whether the server closed it; else it has begun HTTP/2 and sent its settings.
bool Closed(const Descriptor& client) {
  char byte = 0;
  return read(client.get(), &byte, 1) <= 0;
}

TEST(Connections, BeyondTheBoundAreClosedAndOnesThatGoMakeRoom) {
  ServerProcess server(kLimit);
  const int port = std::stoi(server.Line());
  std::vector<Descriptor> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(Connect(port));
  int open = 0;
  for (const Descriptor& client : clients) open += Closed(client) ? 0 : 1;
  EXPECT_GT(open, 50);
  EXPECT_LE(open, static_cast<int>(kLimit) - 32);
  EXPECT_THAT(server.Line(), ::testing::HasSubstr("closed a new connection, 1 so far"));

  clients.clear();
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  worker::v1::DescribeResponse response;
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  const grpc::Status status =
      worker::v1::WorkerService::NewStub(channel)->Describe(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(server.End(), 0);
}

}  // namespace
}  // namespace setu::rpc
