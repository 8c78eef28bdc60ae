// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/model_config.h"
#include "common/model/synthetic_model.h"
#include "services/cli/commands.h"
#include "services/cli/interrupts.h"

namespace setu::cli {
namespace {

struct Shape {
  const char* name;
  uint32_t layers, hidden, ffn, heads, kv_heads, vocabulary, context;
};

// smol: SmolLM2-135M; m1b: 1.07 B weights; m8b: Llama 3.1 8B.
constexpr Shape kShapes[] = {{"smol", 30, 576, 1536, 9, 3, 49152, 8192},
                             {"m1b", 16, 2048, 8192, 32, 8, 49152, 8192},
                             {"m8b", 32, 4096, 14336, 32, 8, 128256, 8192}};

struct SynthFlags {
  std::string out;
  std::string shape = "m1b";
  std::string type = "q8_0";
  std::string architecture = "llama";
  // Absent: as the shape has it.
  std::optional<int64_t> layers, hidden, ffn, heads, kv_heads, head_dim, vocabulary, context;
  bool tied = true;
  int64_t seed = 1;
  int32_t threads = 0;
};

absl::StatusOr<model::SyntheticModelOptions> ModelOptions(const SynthFlags& flags) {
  const Shape& shape =
      *std::find_if(std::begin(kShapes), std::end(kShapes),
                    [&](const Shape& candidate) { return flags.shape == candidate.name; });
  const auto or_shape = [](const std::optional<int64_t>& value, uint32_t otherwise) {
    return value ? static_cast<uint32_t>(*value) : otherwise;
  };
  model::SyntheticModelOptions o;
  o.seed = static_cast<uint64_t>(flags.seed);
  o.name = absl::StrCat("synthetic ", flags.shape, " ", flags.type, " ", flags.seed);
  o.architecture = flags.architecture;
  SETU_ASSIGN_OR_RETURN(o.weights, model::ParseWeightMix(flags.type));
  o.tied = flags.tied;
  o.layers = or_shape(flags.layers, shape.layers);
  o.hidden = or_shape(flags.hidden, shape.hidden);
  o.ffn_hidden = or_shape(flags.ffn, shape.ffn);
  o.heads = or_shape(flags.heads, shape.heads);
  o.kv_heads = or_shape(flags.kv_heads, shape.kv_heads);
  o.head_dim = or_shape(flags.head_dim, o.hidden / o.heads);
  o.context = or_shape(flags.context, shape.context);
  o.vocabulary = or_shape(flags.vocabulary, shape.vocabulary);
  return o;
}

absl::Status Failed(const char* what, const std::string& path, int error) {
  return absl::InternalError(
      absl::StrCat("cannot ", what, " '", path, "': ", strerror(error),
                   error == ENOSPC ? "; make room or choose a smaller --type or shape" : ""));
}

// Writes at `offset`; what it returns is an errno, or 0.
int WriteAll(int file, const std::byte* bytes, size_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t wrote = pwrite(file, bytes, size, static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    bytes += wrote;
    size -= static_cast<size_t>(wrote);
    offset += static_cast<uint64_t>(wrote);
  }
  return 0;
}

// The tensors of a model into an open file, by several threads.
class TensorWriter {
 public:
  TensorWriter(const model::SyntheticModel& model, int file, uint64_t data_offset)
      : model_(model), file_(file) {
    const std::vector<uint64_t> offsets = model.layout().Offsets();
    for (size_t t = 0; t < offsets.size(); ++t) {
      const int64_t step = std::max<int64_t>(1, kPieceBytes / model.RowBytes(t));
      for (int64_t row = 0; row < model.Rows(t); row += step) {
        pieces_.push_back({t, row, std::min(step, model.Rows(t) - row),
                           data_offset + offsets[t] + row * model.RowBytes(t)});
      }
    }
  }

  // 0, or the errno of what failed; ends early where `stop` is requested. A line on a terminal says
  // how far it is once that takes longer than two seconds.
  int Run(int32_t threads, const std::stop_token& stop, const std::string& path) {
    std::vector<std::jthread> workers;
    for (int32_t i = 0; i < threads; ++i) {
      workers.emplace_back([this, &stop] { Work(stop); });
    }
    const bool terminal = isatty(STDERR_FILENO) == 1;
    bool shown = false;
    std::unique_lock lock(mutex_);
    auto wait = std::chrono::milliseconds(2000);
    while (!ended_.wait_for(lock, wait, [&] { return workers_ended_ == threads; })) {
      wait = std::chrono::milliseconds(200);
      if (!terminal) continue;
      const size_t done = std::min(next_.load(), pieces_.size());
      std::fprintf(stderr, "\rwriting %s: %zu %%", path.c_str(), 100 * done / pieces_.size());
      shown = true;
    }
    if (shown) std::fputs("\r\033[K", stderr);
    return error_;
  }

 private:
  static constexpr int64_t kPieceBytes = 1 << 20;
  struct Piece {
    size_t tensor;
    int64_t row, rows;
    uint64_t offset;
  };

  void Work(const std::stop_token& stop) {
    std::vector<float> values;
    std::vector<std::byte> bytes;
    int error = 0;
    for (size_t i;
         error == 0 && !stop.stop_requested() && (i = next_.fetch_add(1)) < pieces_.size();) {
      const Piece& piece = pieces_[i];
      const int64_t row_bytes = model_.RowBytes(piece.tensor);
      values.resize(model_.Cols(piece.tensor));
      bytes.resize(row_bytes * piece.rows);
      for (int64_t r = 0; r < piece.rows; ++r) {
        model_.WriteRow(piece.tensor, piece.row + r, values, bytes.data() + r * row_bytes);
      }
      error = WriteAll(file_, bytes.data(), bytes.size(), piece.offset);
    }
    const std::lock_guard lock(mutex_);
    if (error != 0) error_ = error;
    ++workers_ended_;
    ended_.notify_one();
  }

  const model::SyntheticModel& model_;
  const int file_;
  std::vector<Piece> pieces_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;  // with workers_ended_
  int32_t workers_ended_ = 0;      // guarded by mutex_
  int error_ = 0;                  // guarded by mutex_
};

// The model beside `flags.out`, which appears when it is whole.
absl::Status Write(const SynthFlags& flags, const std::stop_token& stop) {
  SETU_ASSIGN_OR_RETURN(const model::SyntheticModelOptions options, ModelOptions(flags));
  const model::SyntheticModel model(options);
  const std::string header = model.layout().Header(), part = flags.out + ".part";
  const uint64_t bytes =
      header.size() + model.layout().Offsets().back() + model.layout().tensors.back().bytes();

  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return Failed("write", part, errno);
  bool whole = false;
  const absl::Cleanup close_file = [&] {
    close(file);
    if (!whole) unlink(part.c_str());
  };
  if (int e = WriteAll(file, reinterpret_cast<const std::byte*>(header.data()), header.size(), 0)) {
    return Failed("write", part, e);
  }
  if (int e = posix_fallocate(file, 0, static_cast<off_t>(bytes))) return Failed("grow", part, e);
  // The loader says whether it is a model, before the work.
  SETU_ASSIGN_OR_RETURN(const auto made, model::GgufFile::Open(part));
  SETU_RETURN_IF_ERROR(model::ReadModelConfig(*made).status());

  const int32_t cores = static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  TensorWriter writer(model, file, header.size());
  if (int e = writer.Run(flags.threads > 0 ? flags.threads : cores, stop, flags.out)) {
    return Failed("write", part, e);
  }
  if (stop.stop_requested()) return absl::CancelledError("interrupted; nothing was kept");
  if (rename(part.c_str(), flags.out.c_str()) != 0) return Failed("name", flags.out, errno);
  whole = true;
  std::printf("%s: %zu tensors, %.2f GB, %s, seed %ld\n", flags.out.c_str(),
              model.layout().tensors.size(), 1e-9 * static_cast<double>(bytes), flags.type.c_str(),
              static_cast<long>(flags.seed));
  return absl::OkStatus();
}

}  // namespace

int RunModelSynth(const Arguments& arguments) {
  SynthFlags flags;
  config::Options options("setu model synth",
                          "Writes a model of any shape with seeded random weights, for speed runs.",
                          {"setu model synth --out m1b.gguf --type q4_k_m",
                           "setu model synth --out small.gguf --layers 4 --hidden 512 --ffn 1536 "
                           "--heads 8 --kv-heads 4"});
  std::vector<std::string> shapes;
  for (const Shape& shape : kShapes) shapes.emplace_back(shape.name);
  options.Add("out", &flags.out, "the GGUF file to write").Required();
  options.Add("shape", &flags.shape, "where the options below do not say").OneOf(shapes);
  options.Add("type", &flags.type,
              "of the weights: f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, or "
              "the mix q4_k_m or q5_k_m");
  options.Add("architecture", &flags.architecture, "of the model")
      .OneOf({"llama", "qwen2", "qwen3"});
  options.Add("layers", &flags.layers, "of attention and feed-forward").Range(1, 1024);
  options.Add("hidden", &flags.hidden, "values of a token between layers").Range(32, 65536);
  options.Add("ffn", &flags.ffn, "values inside a feed-forward").Range(32, 1 << 20);
  options.Add("heads", &flags.heads, "of queries").Range(1, 1024);
  options.Add("kv-heads", &flags.kv_heads, "of keys and values").Range(1, 1024);
  options.Add("head-dim", &flags.head_dim, "values of a head; hidden / heads where absent")
      .Range(2, 1024);
  options.Add("vocabulary", &flags.vocabulary, "tokens")
      .Range(model::kSyntheticVocabulary, 1 << 20);
  options.Add("context", &flags.context, "tokens of the longest sequence").Range(16, 1 << 24);
  options.Add("tied", &flags.tied, "the embedding is the output matrix");
  options.Add("seed", &flags.seed, "of the weights").Range(0, 1e15);
  options.Add("threads", &flags.threads, "0: as many as there are cores").Range(0, 1024);
  if (const auto code = ParseOrExit(options, arguments)) return *code;
  const Interrupt interrupt;
  const absl::Status status = Write(flags, interrupt.token());
  if (status.ok()) return 0;
  std::fprintf(stderr, "setu model synth: %s\n", std::string(status.message()).c_str());
  return interrupt.came() ? 128 + SIGINT : 1;
}

}  // namespace setu::cli
