// SPDX-License-Identifier: Apache-2.0
// Starts the writes of streams beside the step loop, so that what a write costs, serialising, calls
// of the system and the threads these wake, falls into the model's next step.
//
//   WriteThread writes;
//   writes.Add(stream);      // any thread; `stream->Write()` follows at once, on this thread
#ifndef SETU_SERVICES_DECODE_WRITE_THREAD_H_
#define SETU_SERVICES_DECODE_WRITE_THREAD_H_

#include <memory>
#include <thread>
#include <utility>
#include <variant>

#include "common/base/inbox.h"

namespace setu::decode {

class WriteThread {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual void Write() = 0;  // holds up the others, but not the loop
  };

  WriteThread() : thread_([this] { Run(); }) {}
  // Whoever was added has written.
  ~WriteThread();

  // Never waits for a write. A stream is added again only after it has written, so no more wait
  // than there are streams. They write in the order in which they were added.
  void Add(std::shared_ptr<Stream> stream) { inbox_.PushUnbounded(std::move(stream)); }

 private:
  struct Over {};
  void Run();

  Inbox<std::variant<std::shared_ptr<Stream>, Over>> inbox_{/*capacity=*/0};
  std::thread thread_;  // last: runs while all else is there
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_WRITE_THREAD_H_
