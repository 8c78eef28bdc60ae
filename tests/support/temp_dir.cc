// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/base/check.h"

namespace setu::test {

TempDir::TempDir() {
  path_ = (std::filesystem::temp_directory_path() / "setu-test-XXXXXX").string();
  SETU_CHECK(mkdtemp(path_.data()) != nullptr, "the temporary folder can be written");
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Write(std::string_view name, std::string_view bytes) const {
  const std::string path = File(name);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  SETU_CHECK(file.good(), "the temporary folder takes the file");
  return path;
}

}  // namespace setu::test
