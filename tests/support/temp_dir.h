// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own, removed with all that is in it when the object dies.
//
//   TempDir dir;
//   std::string path = dir.Write("model.gguf", bytes);
#ifndef SETU_TESTS_SUPPORT_TEMP_DIR_H_
#define SETU_TESTS_SUPPORT_TEMP_DIR_H_

#include <string>
#include <string_view>

namespace setu::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Writes (over) the file `name` and returns its path.
  std::string Write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_SUPPORT_TEMP_DIR_H_
