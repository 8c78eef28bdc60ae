// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/client_stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel_factory.h"
#include "common/rpc/server.h"
#include "setu/worker/v1/decode.grpc.pb.h"
#include "setu/worker/v1/worker.grpc.pb.h"
#include "tests/support/loop_thread.h"

namespace setu::rpc {
namespace {

using std::chrono::seconds;
using worker::v1::DecodeRequest;
using worker::v1::DecodeResponse;
using Stream = BidiStream<DecodeRequest, DecodeResponse>;

// Answers every Retry{n} with Ready{n}; Retry{0} ends the stream, Retry{99} waits for the cancel.
class EchoDecode final : public worker::v1::DecodeService::Service {
 public:
  grpc::Status Decode(grpc::ServerContext* context,
                      grpc::ServerReaderWriter<DecodeResponse, DecodeRequest>* stream) override {
    DecodeRequest request;
    while (stream->Read(&request)) {
      if (request.retry().attempt() == 0) {
        ended.set_value();
        return {grpc::StatusCode::ABORTED, "asked to end"};
      }
      if (request.retry().attempt() == 99) continue;
      DecodeResponse response;
      response.mutable_ready()->set_attempt(request.retry().attempt());
      stream->Write(response);
    }
    cancelled.set_value(context->IsCancelled());
    return grpc::Status::OK;
  }
  std::promise<bool> cancelled;
  std::promise<void> ended;
};

class Counter final : public worker::v1::WorkerService::Service {
 public:
  grpc::Status Describe(grpc::ServerContext* context, const worker::v1::DescribeRequest*,
                        worker::v1::DescribeResponse* response) override {
    auto label = context->client_metadata().find("x-request-id");
    if (label == context->client_metadata().end()) return {grpc::StatusCode::NOT_FOUND, "label"};
    response->set_incarnation(std::string(label->second.data(), label->second.size()));
    return grpc::Status::OK;
  }
  grpc::Status WatchLoad(grpc::ServerContext*, const worker::v1::WatchLoadRequest*,
                         grpc::ServerWriter<worker::v1::WatchLoadResponse>* writer) override {
    for (uint64_t i = 1; i <= 3; ++i) {
      worker::v1::WatchLoadResponse response;
      response.set_sequence(i);
      writer->Write(response);
    }
    return grpc::Status::OK;
  }
};

class ClientStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = Server::Start({}, {&decode_, &worker_});
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    channel_ = server_->InProcessChannel();
    decode_stub_ = worker::v1::DecodeService::NewStub(channel_);
    worker_stub_ = worker::v1::WorkerService::NewStub(channel_);
  }
  void TearDown() override {
    owner_.Stop();  // returns only after every call has ended
    server_->Shutdown(seconds(1));
  }

  std::unique_ptr<Stream> Open(StreamEvents<DecodeResponse> events,
                               Duration deadline = seconds(30)) {
    CallOptions options{clock_.Now() + deadline, {}};
    return std::make_unique<Stream>(owner_.loop, options, std::move(events),
                                    [&](grpc::ClientContext* context, Stream::Reactor* reactor) {
                                      decode_stub_->async()->Decode(context, reactor);
                                    });
  }

  // Keeps what it reads, and goes on to the end.
  StreamEvents<DecodeResponse> ReadOn(const std::unique_ptr<Stream>& stream) {
    return {.read =
                [this, &stream](DecodeResponse& response) {
                  seen_.push_back(response.ready().attempt());
                  stream->Read();
                },
            .done = [this](const absl::Status& status) { ended_.set_value(status); }};
  }

  static DecodeRequest Retry(uint32_t attempt) {
    DecodeRequest request;
    request.mutable_retry()->set_attempt(attempt);
    return request;
  }

  SteadyClock clock_;
  testing::LoopThread owner_{clock_};
  EchoDecode decode_;
  Counter worker_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<worker::v1::DecodeService::Stub> decode_stub_;
  std::unique_ptr<worker::v1::WorkerService::Stub> worker_stub_;
  std::vector<uint32_t> seen_;
  std::promise<absl::Status> ended_;
};

TEST_F(ClientStreamTest, EachReadGivesOneMessageAndTheEndComesOnce) {
  std::unique_ptr<Stream> stream;
  owner_.Do([&] {
    stream = Open(ReadOn(stream));
    for (uint32_t i = 1; i <= 5; ++i) EXPECT_TRUE(stream->Write(Retry(i)));
    EXPECT_TRUE(stream->Write(Retry(0)));
    stream->Read();
  });
  const absl::Status status = ended_.get_future().get();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "asked to end");
  owner_.Do([&] {
    EXPECT_EQ(seen_, (std::vector<uint32_t>{1, 2, 3, 4, 5}));
    EXPECT_TRUE(stream->Write(Retry(7))) << "nobody listens, nobody is slow";
    stream.reset();
  });
}

// The server may have said all it had to say long before that is read. Over TCP, where it needs no
// reader to go on.
TEST_F(ClientStreamTest, WritesToAStreamThatTheServerEndedLoseNothingOfIt) {
  EchoDecode decode;
  auto listener = Listener::Bind("--listen", "127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  NullLogger logger;
  const auto server = Server::Start({}, {&decode}, *std::move(listener), logger);
  ASSERT_TRUE(server.ok()) << server.status();
  decode_stub_ = worker::v1::DecodeService::NewStub(
      MakeTcpChannelFactory()->Connect(absl::StrCat("127.0.0.1:", (*server)->port())));
  std::unique_ptr<Stream> stream;
  owner_.Do([&] {
    stream = Open(ReadOn(stream));
    for (uint32_t i : {1, 2, 3, 0}) EXPECT_TRUE(stream->Write(Retry(i)));
  });
  decode.ended.get_future().get();
  for (size_t i = 4; i < Stream::kMaxPendingWrites; ++i) {
    owner_.Do([&] { EXPECT_TRUE(stream->Write(Retry(7))); });
  }
  owner_.Do([&] { stream->Read(); });
  EXPECT_EQ(ended_.get_future().get().code(), absl::StatusCode::kAborted);
  owner_.Do([&] {
    EXPECT_EQ(seen_, (std::vector<uint32_t>{1, 2, 3}));
    stream.reset();
  });
}

TEST_F(ClientStreamTest, DroppingTheHandleCancelsAndSilences) {
  std::unique_ptr<Stream> stream;
  std::promise<void> opened;
  bool heard_end = false;
  owner_.Do([&] {
    stream = Open({.read = [&](DecodeResponse&) { opened.set_value(); },
                   .done = [&](const absl::Status&) { heard_end = true; }});
    EXPECT_TRUE(stream->Write(Retry(1)));
    stream->Read();
  });
  opened.get_future().get();
  owner_.Do([&] { stream.reset(); });
  EXPECT_TRUE(decode_.cancelled.get_future().get());
  owner_.Stop();
  EXPECT_FALSE(heard_end);
}

TEST_F(ClientStreamTest, ADeadlineEndsACallThatNobodyAnswers) {
  std::unique_ptr<Stream> stream;
  std::promise<absl::Status> ended;
  owner_.Do([&] {
    stream = Open({.read = [](DecodeResponse&) {},
                   .done = [&](const absl::Status& status) { ended.set_value(status); }},
                  std::chrono::milliseconds(5));
    EXPECT_TRUE(stream->Write(Retry(99)));
    stream->Read();
  });
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kDeadlineExceeded);
  owner_.Do([&] { stream.reset(); });
}

TEST_F(ClientStreamTest, WritesAreBounded) {
  owner_.Do([&] {
    std::unique_ptr<Stream> stream = Open({.read = [](DecodeResponse&) {}, .done = {}});
    size_t taken = 0;
    while (taken <= Stream::kMaxPendingWrites && stream->Write(Retry(99))) ++taken;
    EXPECT_EQ(taken, Stream::kMaxPendingWrites) << "none completes while the loop is here";
  });
}

TEST_F(ClientStreamTest, AStreamOfAnswersIsReadToItsEnd) {
  using Reports = ReadStream<worker::v1::WatchLoadResponse>;
  std::unique_ptr<Reports> stream;
  std::vector<uint64_t> seen;
  std::promise<absl::Status> ended;
  const worker::v1::WatchLoadRequest request;
  owner_.Do([&] {
    CallOptions options{clock_.Now() + seconds(30), {}};
    stream = std::make_unique<Reports>(
        owner_.loop, options,
        StreamEvents<worker::v1::WatchLoadResponse>{
            .read =
                [&](worker::v1::WatchLoadResponse& report) {
                  seen.push_back(report.sequence());
                  stream->Read();
                },
            .done = [&](const absl::Status& status) { ended.set_value(status); }},
        [&](grpc::ClientContext* context, Reports::Reactor* reactor) {
          worker_stub_->async()->WatchLoad(context, &request, reactor);
        });
    stream->Read();
  });
  EXPECT_TRUE(ended.get_future().get().ok());
  owner_.Do([&] {
    EXPECT_EQ(seen, (std::vector<uint64_t>{1, 2, 3}));
    stream.reset();
  });
}

TEST_F(ClientStreamTest, AUnaryCallCarriesItsMetadata) {
  using Describe = UnaryCall<worker::v1::DescribeResponse>;
  std::unique_ptr<Describe> call;
  std::promise<absl::StatusOr<worker::v1::DescribeResponse>> answered;
  const worker::v1::DescribeRequest request;
  owner_.Do([&] {
    CallOptions options{clock_.Now() + seconds(30), {{"x-request-id", "r-1"}}};
    call = std::make_unique<Describe>(
        owner_.loop, options,
        [&](absl::StatusOr<worker::v1::DescribeResponse> answer) {
          answered.set_value(std::move(answer));
        },
        [&](grpc::ClientContext* context, worker::v1::DescribeResponse* response,
            Describe::Reactor* reactor) {
          worker_stub_->async()->Describe(context, &request, response, reactor);
        });
  });
  auto answer = answered.get_future().get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->incarnation(), "r-1");
  owner_.Do([&] { call.reset(); });
}

}  // namespace
}  // namespace setu::rpc
