// SPDX-License-Identifier: Apache-2.0
// A call to another service as its owner holds it. Destroying it cancels the call and silences it.
// client_stream.h has those that gRPC carries; everything happens on the owner's loop.
//
//   std::unique_ptr<DuplexCall<DecodeRequest>> call = calls.Decode(address, options, events);
//   if (!call->Write(open)) ...
//   call->Read();          // asks for one message: `read` is called once, or `done`
#ifndef SETU_COMMON_RPC_OPEN_CALL_H_
#define SETU_COMMON_RPC_OPEN_CALL_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"

namespace setu::rpc {

struct CallOptions {
  TimePoint deadline;                                         // of the whole call
  std::vector<std::pair<std::string, std::string>> metadata;  // keys in lower case
};

template <typename Response>
struct StreamEvents {
  std::function<void(Response&)> read;            // one message, after one Read
  std::function<void(const absl::Status&)> done;  // once, last; only after a Read found the end
};

// Callbacks must not destroy it.
class OpenCall {
 public:
  OpenCall() = default;
  virtual ~OpenCall() = default;
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;
};

class ReadableCall : public OpenCall {
 public:
  // Asks for the next message; one Read at a time.
  virtual void Read() = 0;
};

template <typename Request>
class DuplexCall : public ReadableCall {
 public:
  // False where too much waits to be sent. What is written to a stream that has ended goes nowhere:
  // reads give all that the peer said before, then the end.
  [[nodiscard]] virtual bool Write(Request request) = 0;
};

}  // namespace setu::rpc

#endif  // SETU_COMMON_RPC_OPEN_CALL_H_
