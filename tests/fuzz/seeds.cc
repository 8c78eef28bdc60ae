// SPDX-License-Identifier: Apache-2.0
// Writes the binary seeds of the corpora: small right inputs, and wrong ones where a field's edge
// is far from what mutations reach. Text seeds are files of their own.
//
//   build/release/test/fuzz_seeds tests/fuzz/corpus
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/base/check.h"
#include "common/model/gguf_writer.h"
#include "setu/v1/inference.pb.h"
#include "setu/worker/v1/kv_transfer.pb.h"
#include "tests/fuzz/kv_setting.h"
#include "tests/support/tiny_model.h"

namespace setu {
namespace {

using kernels::WeightType;
using model::GgufWriter;
using model::RawBytes;

class Folder {
 public:
  explicit Folder(const std::filesystem::path& path) : path_(path) {
    std::filesystem::create_directories(path);
  }
  void Write(const char* name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  const std::filesystem::path path_;
};

GgufWriter SmallFile() {
  GgufWriter writer;
  writer.Set("general.architecture", "llama").Set("a.count", uint32_t{7}).Set("b", true);
  writer.Add("first", WeightType::kF32, {8, 2}, std::string(64, '\x01'));
  writer.Add("second", WeightType::kQ4_1, {64, 1}, std::string(40, '\x02'));
  return writer;
}

void WriteGguf(const Folder& folder) {
  folder.Write("small", SmallFile().Bytes());
  GgufWriter writer = SmallFile();
  writer.version = 2;
  writer.alignment = 64;
  folder.Write("version-2-aligned", writer.Set("general.alignment", uint32_t{64}).Bytes());
  writer = GgufWriter();
  writer.Set("u8", uint8_t{255}).Set("i32", int32_t{-1}).Set("i64", int64_t{-1} << 40);
  writer.Set("f32", 0.5f).Set("f64", 1e300).Set("text", "Ġhello").Set("off", false);
  writer.Set("texts", std::vector<std::string>{"a", "", "bcd"});
  writer.Set("floats", std::vector<float>{1, -2.5f}).Set("ints", std::vector<int32_t>{-1, 1 << 30});
  writer.SetRaw("i8", 1, "\x80").SetRaw("u16", 2, RawBytes(uint16_t{65535}));
  writer.SetRaw("i16", 3, RawBytes(int16_t{-7}));
  const std::string far = RawBytes(uint32_t{10}) + RawBytes(uint64_t{1});
  writer.SetRaw("u64s", 9, far + RawBytes(uint64_t{9}));
  folder.Write("every-value", writer.Bytes());
  writer.SetRaw("u64s", 9, far + RawBytes(~uint64_t{0}));
  folder.Write("element-too-large", writer.Bytes());
  writer.SetRaw("u64s", 9, RawBytes(uint32_t{8}) + RawBytes(uint64_t{1} << 61));
  folder.Write("array-without-end", writer.Bytes());
  writer = SmallFile();
  writer.tensors[1].offset = ~uint64_t{31};
  folder.Write("offset-wraps", writer.Bytes());
  writer.tensors[1].offset = 32;
  folder.Write("overlap", writer.Bytes());
  writer = SmallFile();
  writer.tensors[0].shape = {uint64_t{1} << 24, uint64_t{1} << 24, 1, 1};
  folder.Write("largest-product", writer.Bytes());
  writer = SmallFile();
  writer.Set("general.alignment", uint64_t{1} << 31);
  folder.Write("widest-alignment", writer.Bytes());
  writer = GgufWriter();
  writer.tensor_count = writer.metadata_count = ~uint64_t{0};
  folder.Write("all-counts", writer.Bytes());
}

// Models of a few kilobytes that load.
void WriteModelFiles(const Folder& folder) {
  for (const char* architecture : {"llama", "qwen2", "qwen3"}) {
    GgufWriter writer = test::TinyModel({.architecture = architecture,
                                         .layers = 1,
                                         .hidden = 4,
                                         .ffn_hidden = 4,
                                         .heads = 2,
                                         .kv_heads = 1,
                                         .head_dim = 2});
    folder.Write(architecture, writer.Bytes());
  }
  GgufWriter names;
  names.Set("general.architecture", "\x1b[2J").Set("tokenizer.ggml.\x1b[3J_token_id", uint32_t{1});
  folder.Write("names-that-control-a-terminal", names.Bytes());
}

// The first byte of an input of public_protos names the method.
template <typename Message>
std::string Bytes(const std::string& text) {
  Message message;
  SETU_CHECK(google::protobuf::TextFormat::ParseFromString(text, &message),
             "a seed is well-formed");
  return message.SerializeAsString();
}

void WritePublicProtos(const Folder& folder) {
  const auto generate = [](const std::string& text) {
    return std::string(1, '\0') + Bytes<v1::GenerateRequest>(text);
  };
  folder.Write("text", generate("text: 'hi'"));
  folder.Write("every-field", generate(R"(
      model: "bytes" text: "hi" request_id: "mine"
      sampling { max_tokens: 9 min_tokens: 3 temperature: 0 top_k: 5 top_p: 0.5 min_p: 0.25 seed: 0
                 repetition_penalty: 1.5 frequency_penalty: -2 presence_penalty: 2
                 logit_bias { key: 9 value: 100 } n: 16 }
      stopping { strings: "a" strings: "bc" token_ids: 259 token_ids: 7 ignore_eos: true }
      output { logprobs: 0 echo: true })"));
  folder.Write("top-p-over-1", generate("text: 'x' sampling { top_p: 2 }"));
  folder.Write("ids", generate("token_ids { ids: 1 ids: 259 ids: 260 }"));
  folder.Write("no-ids", generate("token_ids {}"));
  folder.Write("chat", generate(R"(
      chat { messages { role: "system" content: "brief" } messages { role: "user" content: "<s>" }
             add_generation_prompt: false })"));
  folder.Write("numbers", generate(R"(
      text: "x" sampling { temperature: nan top_p: inf max_tokens: 4294967295
                           seed: 18446744073709551615
                           logit_bias { key: 4294967295 value: nan } })"));
  folder.Write("tokenize", '\1' + Bytes<v1::TokenizeRequest>("text: 'hi' parse_special: true"));
  folder.Write("detokenize", '\2' + Bytes<v1::DetokenizeRequest>("token_ids: 5 token_ids: 259"));
  folder.Write("list-models", "\3");
  // A text that is no UTF-8, a group, a field of number 0, a length of 2^32 - 1, 11-byte varints.
  folder.Write("not-utf8", std::string("\0\x12\x02\xc3(", 5));
  folder.Write("group", std::string("\0\x0b\x0c", 3));
  folder.Write("field-0", std::string("\0\x02\x00", 3));
  folder.Write("length", std::string("\0\x12\xff\xff\xff\xff\x0f", 7));
  folder.Write("varint", std::string("\0\x2a\x0c\x08", 4) + std::string(11, '\xff'));
}

// An input of kv_frames: options, then steps.
void WriteKvFrames(const Folder& folder) {
  using worker::v1::PushKvRequest;
  enum Step : char { kBind, kWithdraw, kLose, kSendSigned, kSend };
  const auto send = [](const PushKvRequest& request, Step step = kSend) {
    const std::string bytes = request.SerializeAsString();
    return std::string{step, static_cast<char>(bytes.size())} + bytes;
  };
  const auto manifest = [](bool mixing, uint32_t first_block) {
    PushKvRequest request;
    worker::v1::Manifest& m = *request.mutable_manifest();
    m.set_uuid("u");
    m.set_attempt(1);
    *m.mutable_fingerprint() = fuzz::KvFingerprint(mixing);
    m.set_token_count(fuzz::kKvTokens);
    m.set_ids_digest(fuzz::kKvDigest);
    m.set_first_block(first_block);
    m.set_wire_version(wire::kWireVersion);
    return request;
  };
  const auto frame = [](uint32_t first_block, uint32_t count, uint32_t layer, size_t piece_bytes) {
    PushKvRequest request;
    worker::v1::Frame& f = *request.mutable_frame();
    f.set_first_block(first_block);
    f.set_block_count(count);
    f.set_layer(layer);
    f.set_data(std::string(count * piece_bytes, static_cast<char>(1 + first_block + 8 * layer)));
    fuzz::Sign(f, f.data());
    return request;
  };
  const auto staged = [](uint32_t first_block, uint32_t count, uint32_t layer, uint64_t offset,
                         uint64_t length) {
    PushKvRequest request;
    worker::v1::Frame& f = *request.mutable_frame();
    f.set_first_block(first_block);
    f.set_block_count(count);
    f.set_layer(layer);
    f.mutable_staged()->set_offset(offset);
    f.mutable_staged()->set_length(length);
    std::string data;
    for (uint64_t at = 0; at < std::min<uint64_t>(length, fuzz::kStagedBytes); ++at) {
      data += static_cast<char>(fuzz::StagedByte(offset + at));
    }
    fuzz::Sign(f, data);
    return request;
  };
  const size_t piece = fuzz::kKvLayout.piece_bytes();
  PushKvRequest commit;
  commit.mutable_commit()->set_kv_bytes(2 * fuzz::kKvLayout.block_bytes());
  commit.mutable_commit()->add_first_tokens()->mutable_token()->set_id(5);
  fuzz::Sign(*commit.mutable_commit());
  const std::string begun = send(manifest(false, 0)) + std::string(1, kBind);
  const std::string whole = send(frame(0, 2, 0, piece)) + send(frame(0, 2, 1, piece));
  const std::string plain(2, '\0');
  folder.Write("whole", plain + begun + whole + send(commit));
  folder.Write("piece-by-piece", plain + begun + send(frame(1, 1, 1, piece)) +
                                     send(frame(0, 1, 0, piece), kSendSigned) +
                                     send(frame(1, 1, 0, piece)) + send(frame(0, 1, 1, piece)) +
                                     send(commit));
  PushKvRequest half = commit;
  half.mutable_commit()->set_kv_bytes(fuzz::kKvLayout.block_bytes());
  fuzz::Sign(*half.mutable_commit());
  folder.Write("held-block", std::string{1, 0} + send(manifest(false, 1)) + std::string(1, kBind) +
                                 send(frame(1, 1, 0, piece)) + send(frame(1, 1, 1, piece)) +
                                 send(half));
  PushKvRequest mixed = manifest(true, 0);
  mixed.mutable_manifest()->mutable_fingerprint()->set_numerics("f32/kv-f32/r1");
  mixed.mutable_manifest()->mutable_fingerprint()->mutable_kv_layout()->set_value_bytes(4);
  PushKvRequest twice = commit;
  twice.mutable_commit()->set_kv_bytes(4 * fuzz::kKvLayout.block_bytes());
  fuzz::Sign(*twice.mutable_commit());
  folder.Write("mixed", std::string{0, 1} + send(mixed) + std::string(1, kBind) +
                            send(frame(0, 2, 0, 2 * piece)) + send(frame(0, 2, 1, 2 * piece)) +
                            send(twice));
  folder.Write("into-a-held-block", std::string{1, 0} + send(manifest(false, 1)) +
                                        std::string(1, kBind) + send(frame(0, 1, 0, piece)));
  folder.Write("block-outside", plain + begun + send(frame(2, 1, 0, piece)));
  folder.Write("blocks-wrap", plain + begun + send(frame(~0u, 1, 0, piece)));
  folder.Write("layer-outside", plain + begun + send(frame(0, 1, 2, piece)));
  folder.Write("withdrawn", plain + begun + std::string(1, kWithdraw) + whole + send(commit));
  constexpr uint64_t kSlot = 4096;  // the first one, behind the nonce's page
  folder.Write("staged", plain + begun + send(staged(0, 2, 0, kSlot, 2 * piece)) +
                             send(staged(0, 1, 1, kSlot + 7, piece)) + send(frame(1, 1, 1, piece)) +
                             send(commit));
  folder.Write("staged-over-the-end", plain + begun + send(staged(0, 2, 0, kSlot, 2 * piece)) +
                                          send(staged(0, 1, 1, kSlot + 250, piece)));
  folder.Write("staged-outside", plain + begun + send(staged(0, 1, 0, ~uint64_t{0}, piece)));
  folder.Write("staged-too-long", plain + begun + send(staged(0, 1, 0, kSlot, ~uint64_t{0})));
  folder.Write("staged-too-short", plain + begun + send(staged(0, 2, 0, kSlot, piece)));
  folder.Write("lost", plain + begun + whole + std::string(1, kLose));
}

void WriteWorkerProtos(const Folder& folder) {
  const auto sequence = [](const std::string& text) {
    return std::string(1, '\0') + Bytes<worker::v1::SequenceState>(text);
  };
  const std::string sampling =
      "sampling { max_tokens: 9 temperature: 0.5 top_p: 1 repetition_penalty: 1 end_ids: 2 ";
  folder.Write("plain", sequence("uuid: 'u' ids: 1 ids: 2 prompt_length: 2 choices: 0 " + sampling +
                                 "logit_bias { key: 9 value: 100 } }"));
  folder.Write("choices", sequence("uuid: 'u' ids: 1 prompt_length: 1 choices: 1 choices: 0 " +
                                   sampling + "want_logprobs: true top_logprobs: 20 }"));
  folder.Write("resumed", sequence("uuid: 'u' ids: 1 ids: 99 ids: 0 prompt_length: 1 choices: 3 " +
                                   sampling + "seed: 1 min_p: 0.5 top_k: 4 } cache_salt: 7"));
  folder.Write("numbers",
               sequence("uuid: 'u' ids: 4294967295 prompt_length: 4294967295 choices: 0 "
                        "sampling { temperature: nan top_p: inf max_tokens: 4294967295 }"));
  folder.Write("first-token", '\1' + Bytes<worker::v1::FirstToken>(
                                         "choice: 1 token { id: 5 logprob: -0.5 top { id: 5 } top "
                                         "{ id: 7 logprob: nan } } end: END_REASON_END_ID"));
}

}  // namespace
}  // namespace setu

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]), 2;
  const std::filesystem::path corpus = argv[1];
  setu::WriteGguf(setu::Folder(corpus / "gguf"));
  setu::WriteKvFrames(setu::Folder(corpus / "kv_frames"));
  setu::WriteModelFiles(setu::Folder(corpus / "model_file"));
  setu::WritePublicProtos(setu::Folder(corpus / "public_protos"));
  setu::WriteWorkerProtos(setu::Folder(corpus / "worker_protos"));
}
