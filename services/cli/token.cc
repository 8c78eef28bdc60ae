// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/bearer_token.h"
#include "common/rpc/descriptor.h"
#include "services/cli/commands.h"

namespace setu::cli {
namespace {

struct TokenFlags {
  std::string tenant;
  std::string priority = "normal";
  std::string out;
};

// For its owner's eyes; a file that is there already is somebody's token.
absl::Status WriteToken(const std::string& token, const std::string& path) {
  const auto failed = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write --out '", path, "': ", strerror(errno), "; name a new file"));
  };
  const rpc::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) return failed();
  const std::string line = token + "\n";
  const bool wrote =
      write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  return wrote ? absl::OkStatus() : failed();
}

int RunTokenNew(const Arguments& arguments) {
  TokenFlags flags;
  config::Options options(
      "setu token new",
      "Makes a bearer token. It goes to a file of its own; what the router's --auth-tokens file "
      "needs of it goes to standard output.",
      {"setu token new --tenant acme --out acme.token >> tokens.yaml"});
  options.Add("tenant", &flags.tenant, "whose it is; a line of the router's file").Required();
  options.Add("priority", &flags.priority, "of its requests").OneOf({"high", "normal", "low"});
  options.Add("out", &flags.out, "the new file of the token").Required();
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  const std::string token = rpc::NewToken();
  if (const absl::Status written = WriteToken(token, flags.out); !written.ok()) {
    std::fprintf(stderr, "setu token: %s\n", std::string(written.message()).c_str());
    return 1;
  }
  std::printf("%s: [%s, %s]\n", rpc::HexOf(rpc::DigestOf(token)).c_str(), flags.tenant.c_str(),
              flags.priority.c_str());
  return 0;
}

int Usage(FILE* to) {
  std::fputs(
      "setu token: make a bearer token for a router with --auth-tokens (new)\n"
      "\nExample:\n"
      "  setu token new --tenant acme --out acme.token >> tokens.yaml\n"
      "\nIt explains itself: setu token new --help\n",
      to);
  return to == stdout ? 0 : 2;
}

}  // namespace

int RunToken(const Arguments& arguments) {
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "--help" || word == "-h") return Usage(stdout);
  if (word != "new") return Usage(stderr);
  return RunTokenNew({arguments.begin() + 1, arguments.end()});
}

}  // namespace setu::cli
