// SPDX-License-Identifier: Apache-2.0
// Scripted prefill and decode workers for tests of the router: real gRPC services in this process,
// whose model is a rule (the next token follows from position and choice) and whose misfortunes are
// planned per stream and per attempt.
//
//   FakeWorkers workers;
//   FakeDecode& decode = workers.AddDecode("decode-0");
//   decode.Plan({.lose_at = 3});           // the next stream ends UNAVAILABLE after 3 tokens
#ifndef SETU_TESTS_SUPPORT_FAKE_WORKERS_H_
#define SETU_TESTS_SUPPORT_FAKE_WORKERS_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/rpc/server.h"
#include "common/wire/convert.h"
#include "common/worker/worker_service.h"
#include "setu/worker/v1/decode.grpc.pb.h"
#include "setu/worker/v1/prefill.grpc.pb.h"
#include "tests/support/in_process_network.h"

namespace setu::test {

// What happens to one Decode stream. Counts are of generated indexes: lose_at = 3 means after
// index 2 was sent.
struct DecodePlan {
  std::optional<grpc::Status> refuse;  // in place of Ready
  bool mute = false;                   // never answers Open
  bool hasty = false;                  // sends a token in place of Ready
  bool stall_transfer = false;         // reports the first attempt's transfer as stalled
  bool forget_retry = false;           // the KV counts as lost, though it was committed
  std::optional<int32_t> lose_at;
  grpc::Status lose_with{grpc::StatusCode::UNAVAILABLE, "planned loss"};
  std::optional<int32_t> preempt_at;
  std::optional<int32_t> drain_at;  // says so and goes on
  std::optional<int32_t> hang_at;   // sends nothing more
  std::optional<int32_t> skip_at;   // leaves this index out
  bool repeat = false;              // sends every token twice
};

// What happens to one Prefill call.
struct PrefillPlan {
  enum class Point { kNever, kBefore, kAfterFirst, kAfterCommit };
  Point fail = Point::kNever;
  grpc::Status fail_with{grpc::StatusCode::UNAVAILABLE, "planned failure"};
  Point hang = Point::kNever;  // until it is cancelled
  bool mute = false;           // the KV goes out, and no word of it until it is cancelled
};

class FakeWorkers;
using Headers = std::multimap<std::string, std::string>;

// A server with a WorkerService and a script; the base of both kinds.
class FakeWorker {
 public:
  FakeWorker(FakeWorkers& workers, std::string address, worker::v1::Role role);
  virtual ~FakeWorker();

  // Changes what it reports of itself.
  void Report(worker::v1::WatchLoadResponse load);
  worker::v1::WatchLoadResponse load() const { return load_; }
  const std::string& address() const { return address_; }
  // As kill -9, and as a new process at the same address.
  void Kill();
  void Restart();

 protected:
  void StartServer(grpc::Service* service);
  static Headers HeadersOf(const grpc::CallbackServerContext& context);
  static std::vector<std::string> Values(const std::vector<Headers>& calls, const std::string& key);
  FakeWorkers& workers_;

 private:
  const std::string address_;
  const worker::v1::Role role_;
  int incarnation_ = 0;
  grpc::Service* service_ = nullptr;
  worker::v1::WatchLoadResponse load_;
  std::unique_ptr<worker::WorkerService> worker_service_;
  std::unique_ptr<rpc::Server> server_;
};

class FakeDecode final : public worker::v1::DecodeService::CallbackService, public FakeWorker {
 public:
  FakeDecode(FakeWorkers& workers, std::string address);
  ~FakeDecode() override;

  // For the next stream that has none; without a plan all goes well.
  void Plan(const DecodePlan& plan);
  int streams() const;                 // opened, ever
  int open_streams() const;            // now
  std::set<uint32_t> stopped() const;  // choices of StopChoice, ever
  int promised_all() const;            // streams that asked for it, ever
  int32_t tokens_sent() const;         // ever
  // This header of each stream, in order of their start; "" where one lacks it.
  std::vector<std::string> headers(const std::string& key) const;
  void WaitOpenStreams(int count) const;
  void WaitTokensSent(int32_t count) const;
  // A prefill worker pushed the KV of this stream. False where it is not wanted.
  bool Commit(const std::string& uuid, uint32_t attempt);

  grpc::ServerBidiReactor<worker::v1::DecodeRequest, worker::v1::DecodeResponse>* Decode(
      grpc::CallbackServerContext* context) override;

 private:
  class Stream;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<DecodePlan> plans_;
  std::map<std::string, Stream*> by_uuid_;
  std::set<Stream*> open_;
  std::set<uint32_t> stopped_;
  std::vector<Headers> headers_;
  int streams_ = 0;
  int promised_all_ = 0;
  int32_t tokens_sent_ = 0;
};

class FakePrefill final : public worker::v1::PrefillService::CallbackService, public FakeWorker {
 public:
  FakePrefill(FakeWorkers& workers, std::string address);
  ~FakePrefill() override;

  void Plan(const PrefillPlan& plan);
  // Its KV does not reach that decode worker, until Reconnect.
  void CutOff(const std::string& decode);
  void Reconnect();
  int calls() const;
  int open_calls() const;
  std::vector<worker::v1::PrefillRequest> requests() const;
  // This header of each call, in order of their start; "" where one lacks it.
  std::vector<std::string> headers(const std::string& key) const;
  void WaitCalls(int count) const;
  void WaitOpenCalls(int count) const;

  grpc::ServerWriteReactor<worker::v1::PrefillResponse>* Prefill(
      grpc::CallbackServerContext* context, const worker::v1::PrefillRequest* request) override;

 private:
  class Call;
  bool DoesNotReach(const std::string& decode) const;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<PrefillPlan> plans_;
  std::set<std::string> unreached_;
  std::vector<worker::v1::PrefillRequest> requests_;
  std::vector<Headers> headers_;
  int open_ = 0;
};

class FakeWorkers {
 public:
  FakeWorkers();
  ~FakeWorkers();

  FakeDecode& AddDecode(const std::string& address);
  FakePrefill& AddPrefill(const std::string& address);
  // Ends every choice at this generated index with `end_id`.
  void EndAt(int32_t index, uint32_t end_id) { end_ = {index, end_id}; }

  // The rule: letters from 'a' on, each choice three letters further.
  uint32_t TokenAt(int32_t generated, uint32_t choice) const;
  worker::v1::EndReason EndOf(const worker::v1::SamplingParams& sampling, int32_t generated,
                              uint32_t choice) const;
  std::string Text(int32_t tokens, uint32_t choice = 0) const;

  InProcessNetwork& network() { return network_; }
  static constexpr uint64_t kTokenizer = 2;  // in the fingerprint
  // Of workers that start from now on.
  worker::v1::Fingerprint fingerprint;
  uint32_t wire_version = wire::kWireVersion;
  uint32_t resume_watermark = 0;  // of decode workers

 private:
  friend class FakePrefill;
  FakeDecode* DecodeAt(const std::string& address);

  InProcessNetwork network_;
  std::optional<std::pair<int32_t, uint32_t>> end_;
  std::vector<std::unique_ptr<FakeDecode>> decodes_;
  std::vector<std::unique_ptr<FakePrefill>> prefills_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_FAKE_WORKERS_H_
