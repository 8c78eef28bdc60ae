// SPDX-License-Identifier: Apache-2.0
// A push through a pipe, as common/kv_transfer/sender.h sends it: manifest, frames of one run of
// blocks in one layer, commit; one part on its way at a time. Bytes are read when they go out.
// Whoever started it keeps it until `done`.
#ifndef SETU_TESTS_SIMULATOR_SENDING_H_
#define SETU_TESTS_SIMULATOR_SENDING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/kv/kv_storage.h"
#include "common/kv_transfer/push.h"
#include "setu/worker/v1/kv_transfer.pb.h"
#include "tests/simulator/decode_node.h"
#include "tests/simulator/network.h"

namespace setu::simulator {

class Sending final : public kv_transfer::Push, public std::enable_shared_from_this<Sending> {
 public:
  static std::shared_ptr<Sending> Start(std::shared_ptr<Pipe> pipe, DecodeNode& decode,
                                        const kv::KvStorage& storage, kv_transfer::PushPlan plan,
                                        kv_transfer::PushDone done);

  void Final(int32_t layer, int32_t blocks) override;
  void Commit(std::span<const wire::FirstToken> first_tokens) override;
  void Cancel() override;

 private:
  Sending(std::shared_ptr<Pipe> pipe, DecodeNode& decode, const kv::KvStorage& storage,
          kv_transfer::PushPlan plan, kv_transfer::PushDone done);
  void Begin();
  template <typename Event>
  void AtTheEndOfTheTurn(Event event);
  void SendNext();
  bool NextFrame(worker::v1::Frame& frame);
  void Send(const char* what, worker::v1::PushKvRequest part);
  void Ended(const absl::Status& status);

  const std::shared_ptr<Pipe> pipe_;
  DecodeNode& decode_;
  const kv::KvStorage& storage_;
  const kv_transfer::PushPlan plan_;
  kv_transfer::PushDone done_;                             // empty once called
  std::shared_ptr<std::shared_ptr<PushSession>> session_;  // decode's end, once it is there
  std::vector<int32_t> final_, sent_;                      // [layers], blocks
  std::optional<worker::v1::Commit> commit_;
  uint64_t kv_bytes_ = 0;
  bool on_its_way_ = false;
  bool all_sent_ = false;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_SENDING_H_
