// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kv_peer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "common/kv_transfer/peer_staging.h"
#include "common/wire/checksum.h"
#include "common/wire/convert.h"

namespace setu::test {
namespace {

constexpr std::chrono::seconds kPatience(20);

}  // namespace

std::map<std::pair<uint32_t, uint32_t>, std::string> KvPeer::Received::Pieces() const {
  std::map<std::pair<uint32_t, uint32_t>, std::string> pieces;
  for (const worker::v1::Frame& frame : frames) {
    EXPECT_EQ(wire::Crc32cOf(frame, std::as_bytes(std::span(frame.data()))), frame.crc32c());
    EXPECT_EQ(frame.data().size() % frame.block_count(), 0u);
    const size_t piece_bytes = frame.data().size() / frame.block_count();
    for (uint32_t i = 0; i < frame.block_count(); ++i) {
      const auto key = std::pair(frame.first_block() + i, frame.layer());
      EXPECT_TRUE(pieces.emplace(key, frame.data().substr(i * piece_bytes, piece_bytes)).second)
          << "block " << key.first << " of layer " << key.second << " came twice";
    }
  }
  return pieces;
}

class KvPeer::Stream final
    : public grpc::ServerBidiReactor<worker::v1::PushKvRequest, worker::v1::PushKvResponse> {
 public:
  Stream(KvPeer& peer, size_t number, Fault fault)
      : peer_(peer), number_(number), fault_(std::move(fault)) {
    Continue();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status(grpc::StatusCode::CANCELLED, "no commit came"));
    std::optional<worker::v1::PushKvResponse> answer;
    {
      std::lock_guard lock(peer_.mutex_);
      Received& received = peer_.received_[number_];
      ++peer_.messages_[number_];
      if (request_.has_manifest()) received.manifest = request_.manifest();
      if (request_.has_frame()) received.frames.push_back(request_.frame());
      if (request_.has_commit()) received.commit = request_.commit();
      if (request_.manifest().has_memory()) answer = Open(request_.manifest().memory());
      if (request_.frame().has_staged()) answer = Fetch(received);
      peer_.changed_.notify_all();
    }
    ++read_;
    if (request_.has_commit() && read_ <= fault_.after) return Commit();
    if (!answer || read_ >= fault_.after) return Continue();
    response_ = *answer;
    StartWrite(&response_);
  }
  void OnWriteDone(bool) override {
    if (committing_) return Finish(grpc::Status::OK);
    Continue();
  }
  void OnCancel() override {
    {
      std::lock_guard lock(peer_.mutex_);
      peer_.received_[number_].cancelled = true;
    }
    End(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    {
      std::lock_guard lock(peer_.mutex_);
      peer_.received_[number_].ended = true;
      peer_.changed_.notify_all();
    }
    delete this;
  }

 private:
  void Continue() {
    if (read_ < fault_.after) return StartRead(&request_);
    if (fault_.status) End(*fault_.status);
  }
  worker::v1::PushKvResponse Open(const worker::v1::SharedMemory& offer) {
    worker::v1::PushKvResponse answer;
    answer.mutable_memory()->set_refused_because(fault_.memory_refused);
    if (!fault_.memory_refused.empty()) return answer;
    auto memory = kv_transfer::PeerStaging::Open(offer);
    EXPECT_TRUE(memory.ok()) << memory.status();
    if (memory.ok()) memory_ = *std::move(memory);
    return answer;
  }
  std::optional<worker::v1::PushKvResponse> Fetch(Received& received) {
    const auto bytes = memory_.value().Fetch(request_.frame().staged());
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    if (bytes.ok()) received.frames.back().set_data(bytes->data(), bytes->size());
    ++received.staged;
    if (fault_.keeps_slots) return std::nullopt;
    worker::v1::PushKvResponse answer;
    answer.set_frames_read(received.staged);
    return answer;
  }
  void Commit() {
    if (fault_.keeps_silent) return;
    if (ended_.exchange(true)) return;
    committing_ = true;
    response_.set_committed(true);
    StartWrite(&response_);
  }
  void End(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }

  KvPeer& peer_;
  const size_t number_;
  const Fault fault_;
  int read_ = 0;
  std::atomic<bool> ended_ = false;
  bool committing_ = false;
  worker::v1::PushKvRequest request_;
  worker::v1::PushKvResponse response_;
  std::optional<kv_transfer::PeerStaging> memory_;
};

void KvPeer::Misbehave(Fault fault) {
  std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

KvPeer::Received KvPeer::WaitForPush(size_t number) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(
      lock, kPatience, [&] { return received_.size() > number && received_[number].ended; }));
  return received_.size() > number ? received_[number] : Received();
}

void KvPeer::WaitForMessages(size_t number, size_t messages) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(
      lock, kPatience, [&] { return received_.size() > number && messages_[number] >= messages; }));
}

size_t KvPeer::pushes() {
  std::lock_guard lock(mutex_);
  return received_.size();
}

grpc::ServerBidiReactor<worker::v1::PushKvRequest, worker::v1::PushKvResponse>* KvPeer::PushKv(
    grpc::CallbackServerContext*) {
  std::lock_guard lock(mutex_);
  received_.emplace_back();
  messages_.push_back(0);
  changed_.notify_all();
  return new Stream(*this, received_.size() - 1, fault_);
}

}  // namespace setu::test
