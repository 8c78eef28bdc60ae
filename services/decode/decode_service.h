// SPDX-License-Identifier: Apache-2.0
// setu.worker.v1.DecodeService: one reactor per Decode stream. It turns what arrives into events
// for the loop's inbox, and what the loop sends into messages; it decides nothing.
#ifndef SETU_SERVICES_DECODE_DECODE_SERVICE_H_
#define SETU_SERVICES_DECODE_DECODE_SERVICE_H_

#include <atomic>
#include <cstdint>

#include "common/base/inbox.h"
#include "services/decode/event.h"
#include "services/decode/write_thread.h"
#include "setu/worker/v1/decode.grpc.pb.h"

namespace setu::decode {

class DecodeService final : public worker::v1::DecodeService::CallbackService {
 public:
  // `inbox` must outlive the server of this service, and must be drained until that is gone: every
  // stream ends by the loop.
  DecodeService(Inbox<Event>& inbox, int32_t vocabulary);

  grpc::ServerBidiReactor<worker::v1::DecodeRequest, worker::v1::DecodeResponse>* Decode(
      grpc::CallbackServerContext* context) override;

 private:
  Inbox<Event>& inbox_;
  const int32_t vocabulary_;
  std::atomic<RequestId> next_id_ = 1;
  WriteThread writes_;
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_DECODE_SERVICE_H_
