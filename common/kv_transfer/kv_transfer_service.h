// SPDX-License-Identifier: Apache-2.0
// setu.worker.v1.KvTransferService of a decode worker: one reactor per PushKv stream, which takes
// one message at a time to its Transfer. The parsed message, or the bytes read of a staged frame,
// is all that a stream keeps of what it brings.
#ifndef SETU_COMMON_KV_TRANSFER_KV_TRANSFER_SERVICE_H_
#define SETU_COMMON_KV_TRANSFER_KV_TRANSFER_SERVICE_H_

#include "common/kv_transfer/receiver.h"
#include "setu/worker/v1/kv_transfer.grpc.pb.h"

namespace setu::kv_transfer {

class KvTransferService final : public worker::v1::KvTransferService::CallbackService {
 public:
  // `receiver` must outlive the server of this service.
  explicit KvTransferService(Receiver& receiver) : receiver_(receiver) {}

  grpc::ServerBidiReactor<worker::v1::PushKvRequest, worker::v1::PushKvResponse>* PushKv(
      grpc::CallbackServerContext* context) override;

 private:
  Receiver& receiver_;
};

}  // namespace setu::kv_transfer

#endif  // SETU_COMMON_KV_TRANSFER_KV_TRANSFER_SERVICE_H_
