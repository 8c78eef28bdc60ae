// SPDX-License-Identifier: Apache-2.0
// setu.worker.v1.PrefillService: checks a request, hands it to the loop and carries its events
// back.
#ifndef SETU_SERVICES_PREFILL_PREFILL_SERVICE_H_
#define SETU_SERVICES_PREFILL_PREFILL_SERVICE_H_

#include <atomic>
#include <cstdint>

#include "absl/status/statusor.h"
#include "services/prefill/loop.h"
#include "services/prefill/prompt.h"
#include "setu/worker/v1/prefill.grpc.pb.h"

namespace setu::prefill {

// What every prompt of this worker must fit.
struct PromptLimits {
  int32_t vocabulary = 0;
  int32_t tokens = 0;  // min(model context, whole pool)
  int32_t block_tokens = 16;
};

// INVALID_ARGUMENT names the field, its value and the limit. `reply` is left empty.
absl::StatusOr<Prompt> ReadPrompt(const worker::v1::PrefillRequest& request,
                                  const PromptLimits& limits);

class PrefillService final : public worker::v1::PrefillService::CallbackService {
 public:
  // The loop must outlive every call.
  PrefillService(const PromptLimits& limits, Loop& loop) : limits_(limits), loop_(loop) {}

  grpc::ServerWriteReactor<worker::v1::PrefillResponse>* Prefill(
      grpc::CallbackServerContext* context, const worker::v1::PrefillRequest* request) override;

  // Requests refused because they were wrong.
  uint64_t invalid() const { return invalid_; }

 private:
  class Stream;
  const PromptLimits limits_;
  Loop& loop_;
  std::atomic<uint64_t> invalid_ = 0;
};

}  // namespace setu::prefill

#endif  // SETU_SERVICES_PREFILL_PREFILL_SERVICE_H_
