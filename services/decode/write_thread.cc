// SPDX-License-Identifier: Apache-2.0
#include "services/decode/write_thread.h"

#include <optional>

namespace setu::decode {

WriteThread::~WriteThread() {
  inbox_.PushUnbounded(Over{});
  thread_.join();
}

void WriteThread::Run() {
  while (true) {
    inbox_.WaitUntil(std::nullopt);
    for (auto& item : inbox_.Drain()) {
      if (std::holds_alternative<Over>(item)) return;
      // Let go of at once: the next Drain, which would, may be long in coming.
      std::exchange(std::get<std::shared_ptr<Stream>>(item), nullptr)->Write();
    }
  }
}

}  // namespace setu::decode
