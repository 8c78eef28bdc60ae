// SPDX-License-Identifier: Apache-2.0
#include "services/decode/write_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

namespace setu::decode {
namespace {

class FakeStream final : public WriteThread::Stream {
 public:
  explicit FakeStream(std::function<void()> write) : write_(std::move(write)) {}
  void Write() override { write_(); }

 private:
  const std::function<void()> write_;
};

TEST(WriteThread, NobodyWaitsForAWriteAndAllWriteInTheirOrder) {
  std::promise<void> begun, go_on;
  std::vector<int> written;
  {
    WriteThread writes;
    writes.Add(std::make_shared<FakeStream>([&] {
      begun.set_value();
      go_on.get_future().wait();
      written.push_back(1);
    }));
    begun.get_future().wait();
    for (int i = 2; i < 6; ++i) {
      writes.Add(std::make_shared<FakeStream>([&, i] { written.push_back(i); }));
    }
    go_on.set_value();
  }
  EXPECT_THAT(written, ::testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST(WriteThread, WhoWasAddedHasWrittenWhenItDies) {
  bool written = false;
  {
    WriteThread writes;
    writes.Add(std::make_shared<FakeStream>([&] { written = true; }));
  }
  EXPECT_TRUE(written);
}

TEST(WriteThread, AStreamIsLetGoOnceItHasWritten) {
  WriteThread writes;
  std::promise<void> gone;
  writes.Add(std::shared_ptr<FakeStream>(new FakeStream([] {}), [&](FakeStream* stream) {
    delete stream;
    gone.set_value();
  }));
  gone.get_future().wait();
}

}  // namespace
}  // namespace setu::decode
