// SPDX-License-Identifier: Apache-2.0
// The main function of a fuzz target where there is no libFuzzer: every input of a corpus, then
// mutations of them, the same ones in every run.
//
//   fuzz_gguf CORPUS_FOLDER MUTATIONS
//   fuzz_gguf FILE                       # that input alone
//
// A child process runs the inputs, so that its parent can say which one ended it, however it did.
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// An input is small, so what it makes is small too. AddressSanitizer ends what asks for more.
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=64"; }

namespace setu::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSecondsOfCpu = 20;  // of one input, under any sanitizer

struct Entry {
  std::string name;
  std::string bytes;
};

// What the child works at, seen by its parent.
struct Current {
  char name[256];
  size_t mutation;  // 0: the entry as it is
  size_t size;
  char bytes[kMaxInputBytes];
};

Entry ReadEntry(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {path.filename().string(), std::string(std::istreambuf_iterator<char>(in), {})};
}

std::vector<Entry> ReadCorpus(const fs::path& folder) {
  std::vector<Entry> corpus;
  for (const auto& file : fs::directory_iterator(folder)) corpus.push_back(ReadEntry(file.path()));
  std::sort(corpus.begin(), corpus.end(), [](auto& a, auto& b) { return a.name < b.name; });
  return corpus;
}

void RunOne(const Entry& entry, size_t mutation, const std::string& input, Current& current) {
  std::snprintf(current.name, sizeof(current.name), "%s", entry.name.c_str());
  current.mutation = mutation;
  current.size = std::min(input.size(), kMaxInputBytes);
  std::memcpy(current.bytes, input.data(), current.size);
  const itimerval limit = {.it_interval = {}, .it_value = {.tv_sec = kMostSecondsOfCpu}};
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
  // A copy of exactly these bytes: a read behind them is seen.
  const std::vector<uint8_t> bytes(current.bytes, current.bytes + current.size);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void RunAll(const std::vector<Entry>& corpus, size_t mutations, Current& current) {
  for (const Entry& entry : corpus) RunOne(entry, 0, entry.bytes, current);
  Mutator mutator(/*seed=*/1);
  for (size_t i = 1; i <= mutations; ++i) {
    const Entry& entry = corpus[i % corpus.size()];
    const Entry& other = corpus[mutator.Below(corpus.size())];
    RunOne(entry, i, mutator.Mutate(entry.bytes, other.bytes), current);
  }
}

void Report(const char* program, int status, const Current& current) {
  const std::string name = fs::path(program).filename().string();
  const fs::path kept = fs::temp_directory_path() / (name + "-" + std::to_string(getpid()));
  std::ofstream(kept, std::ios::binary).write(current.bytes, std::streamsize(current.size));
  const bool killed = WIFSIGNALED(status);
  std::fprintf(stderr, "%s: ended with %s %d at %s, mutation %zu; run it again with\n  %s %s\n",
               name.c_str(), killed ? "signal" : "status",
               killed ? WTERMSIG(status) : WEXITSTATUS(status), current.name, current.mutation,
               program, kept.c_str());
}

int Main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s CORPUS_FOLDER MUTATIONS\n", argv[0]), 2;
  const fs::path path = argv[1];
  if (fs::is_regular_file(path)) {
    const std::string bytes = ReadEntry(path).bytes;
    return LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  const std::vector<Entry> corpus = ReadCorpus(path);
  if (corpus.empty()) return std::fprintf(stderr, "%s holds no input\n", path.c_str()), 2;
  void* shared =
      mmap(nullptr, sizeof(Current), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return std::perror("mmap"), 2;
  auto& current = *static_cast<Current*>(shared);
  const pid_t child = fork();
  if (child < 0) return std::perror("fork"), 2;
  if (child == 0) {
    RunAll(corpus, argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0, current);
    std::exit(0);  // leaks are looked for at an orderly end
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) Report(argv[0], status, current);
  return status != 0;
}

}  // namespace
}  // namespace setu::fuzz

int main(int argc, char** argv) { return setu::fuzz::Main(argc, argv); }
