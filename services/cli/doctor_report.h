// SPDX-License-Identifier: Apache-2.0
// What `setu doctor` found, as text and as JSON. Pure.
//
//   std::fputs(DoctorText(facts).c_str(), stdout);
#ifndef SETU_SERVICES_CLI_DOCTOR_REPORT_H_
#define SETU_SERVICES_CLI_DOCTOR_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/roofline/advice.h"
#include "common/roofline/verdict.h"

namespace setu::cli {

struct MachineFacts {
  std::string cpu;
  int32_t cores = 0;
  std::optional<double> quota;    // CPUs that the cgroup allows; nullopt: all
  int32_t threads = 0;            // that a worker uses
  std::vector<std::string> isas;  // best first
  int64_t memory_bytes = 0;       // of the machine, or of the cgroup where that is less
  int64_t l3_bytes = 0;
  std::string huge_pages;  // of memory that asks for them: always, madvise or never
};

// Of a model that was loaded for this.
struct ModelFacts {
  std::string path, name, quantization;
  std::string numerics;  // such as int8-g32/kv-f16/r1
  std::string isa;
  std::string load_flags;    // that it was loaded with, for the command: " --weights int4"
  int64_t weight_bytes = 0;  // packed
  int64_t huge_bytes = 0;    // of the process, in huge pages
  int64_t pool_tokens = 0;
  int64_t pool_bytes = 0;
  int64_t context = 512;  // tokens of a sequence, for what is expected
  roofline::StepModel step;
};

struct DoctorFacts {
  MachineFacts machine;
  std::optional<ModelFacts> model;
};

// What is expected of a step, over and over.
struct Expected {
  std::string what;  // "decode x8"
  double tokens_per_second = 0;
  double roof_share = 0;  // of what the hardware alone would give
  roofline::Limit limit = roofline::Limit::kIdle;
};
std::vector<Expected> Expectations(const ModelFacts& model);

// Sequences of `context` tokens that the pool holds.
int64_t LargestBatch(const ModelFacts& model);
// The command that runs this model here, with KV memory for 32 such sequences where there is room.
std::string RecommendedCommand(const DoctorFacts& facts);

std::string DoctorText(const DoctorFacts& facts);
std::string DoctorJson(const DoctorFacts& facts);

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_DOCTOR_REPORT_H_
