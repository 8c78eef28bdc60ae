// SPDX-License-Identifier: Apache-2.0
#include "common/logging/logger.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace setu {

void StderrLogger::Write(Level level, std::string_view message) {
  constexpr char kLetters[] = {'I', 'W', 'E'};
  const char letter = kLetters[static_cast<int>(level)];
  std::string line =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()), " ",
                   std::string(1, letter), " ", component_, " ");
  // A name that came from outside must not begin a line of its own.
  for (char c : message) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  line += '\n';
  // A log that cannot be written is no reason to stop serving.
  while (write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EINTR) continue;
}

}  // namespace setu
