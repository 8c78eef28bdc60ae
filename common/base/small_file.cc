// SPDX-License-Identifier: Apache-2.0
#include "common/base/small_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace setu {

absl::StatusOr<std::string> ReadSmallFile(absl::string_view what, const std::string& path,
                                          size_t most) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", what, " ", path, ": ", why));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return refuse(strerror(errno));
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat about {};
  if (fstat(fd, &about) != 0) return refuse(strerror(errno));
  if (S_ISDIR(about.st_mode)) return refuse("it is a directory");
  if (!S_ISREG(about.st_mode)) return refuse("it is no regular file");
  std::string text(most + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = read(fd, text.data() + size, text.size() - size);
    if (n < 0) return refuse(strerror(errno));
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size > most) {
    return refuse(absl::StrCat("it has over ", most, " bytes, the most allowed"));
  }
  text.resize(size);
  return text;
}

}  // namespace setu
