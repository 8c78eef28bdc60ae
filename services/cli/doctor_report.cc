// SPDX-License-Identifier: Apache-2.0
#include "services/cli/doctor_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace setu::cli {
namespace {

constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
constexpr int64_t kPrompt = 512;
constexpr int64_t kBatches[] = {1, 8, 32};
constexpr int64_t kAdvisedBatch = 8;

roofline::Load LoadOf(const ModelFacts& model) {
  return {.batch = kAdvisedBatch, .context = model.context, .prompt = kPrompt};
}

Expected Expect(const ModelFacts& model, std::string what, const roofline::StepRows& rows) {
  const roofline::StepTerms terms = model.step.Terms(rows);
  return {.what = std::move(what),
          .tokens_per_second = static_cast<double>(rows.rows) / terms.seconds(),
          .roof_share = model.step.RoofSeconds(rows) / terms.seconds(),
          .limit = LimitOf(terms)};
}

std::string MachineText(const MachineFacts& machine) {
  return absl::StrCat(
      "machine\n  CPU      ", machine.cpu, ", ", machine.cores, " cores, quota ",
      machine.quota ? absl::StrFormat("%.1f", *machine.quota) : "none", ": ", machine.threads,
      " threads\n  ISA      ", absl::StrJoin(machine.isas, ", "),
      absl::StrFormat("\n  memory   %.1f GiB; huge pages: %s\n  L3       %.0f MiB\n",
                      static_cast<double>(machine.memory_bytes) / kGiB, machine.huge_pages,
                      static_cast<double>(machine.l3_bytes) / kMiB));
}

std::string ModelText(const ModelFacts& model) {
  const roofline::Peaks& peaks = model.step.peaks;
  std::string text = absl::StrFormat(
      "\nmodel\n  %s, %s: it fits\n  weights  %.1f MiB packed, %.1f MiB of the process in huge "
      "pages\n  KV       %.1f KiB a token; a pool of %.0f MiB holds %d tokens\n",
      model.name, model.quantization, static_cast<double>(model.weight_bytes) / kMiB,
      static_cast<double>(model.huge_bytes) / kMiB,
      static_cast<double>(model.step.shape.kv_token_bytes) / 1024,
      static_cast<double>(model.pool_bytes) / kMiB, model.pool_tokens);
  absl::StrAppendFormat(
      &text,
      "\npeaks, measured: %s on %s\n  read     %.1f GB/s%s\n  compute  %.0f GFLOP/s\n  ridge    "
      "%.1f FLOP a byte\n",
      model.numerics, model.isa, 1e-9 * peaks.bytes_per_second,
      peaks.cache_resident() ? " of the cache: the weights are less than twice the L3" : "",
      1e-9 * peaks.operations_per_second, peaks.ridge());
  absl::StrAppendFormat(&text,
                        "\nexpected of a worker, at %d tokens a sequence\n  %-13s %10s %12s  %s\n",
                        model.context, "", "tokens/s", "of the roof", "held back");
  for (const Expected& e : Expectations(model)) {
    absl::StrAppendFormat(&text, "  %-13s %10.0f %10.0f %%  %s\n", e.what, e.tokens_per_second,
                          100 * e.roof_share, Name(e.limit));
  }
  return text;
}

std::string Gain(double factor) { return absl::StrFormat("%.0f %%", 100 * (factor - 1)); }

std::string AdviceText(const ModelFacts& model) {
  const roofline::Advice advice = Advise(model.step, LoadOf(model));
  std::string text =
      absl::StrCat("\nadvice\n  batch: the KV pool holds ", LargestBatch(model), " sequences; ");
  if (advice.ridge_batch) {
    absl::StrAppend(
        &text, "up to ", *advice.ridge_batch,
        " each adds tokens/s for next to nothing, beyond that computing is the limit\n");
  } else {
    absl::StrAppend(&text, "memory is the limit up to ", roofline::kMostBatch,
                    ": more is better\n");
  }
  absl::StrAppend(&text, "  smaller, at batch ", kAdvisedBatch, ": 8-bit weights +",
                  Gain(advice.int8_weights), ", 4-bit weights +", Gain(advice.int4_weights),
                  ", 8-bit KV +", Gain(advice.int8_kv), " tokens/s\n");
  absl::StrAppendFormat(&text,
                        "  workers: %.2f prefill for each decode, for prompts of %d tokens and "
                        "answers of %d\n",
                        advice.prefill_per_decode, kPrompt, LoadOf(model).answer);
  return text;
}

}  // namespace

std::vector<Expected> Expectations(const ModelFacts& model) {
  roofline::StepRows prompt;
  prompt.Add(kPrompt, 0, true);
  std::vector<Expected> all = {Expect(model, absl::StrCat("prefill ", kPrompt), prompt)};
  for (const int64_t batch : kBatches) {
    all.push_back(
        Expect(model, absl::StrCat("decode x", batch), roofline::DecodeRows(batch, model.context)));
  }
  return all;
}

int64_t LargestBatch(const ModelFacts& model) { return model.pool_tokens / (model.context + 1); }

std::string RecommendedCommand(const DoctorFacts& facts) {
  const ModelFacts& model = *facts.model;
  constexpr int64_t kWorkers = 2, kSequences = 32;  // one of each kind
  const int64_t wanted =
      kWorkers * kSequences * (model.context + 1) * model.step.shape.kv_token_bytes;
  // Half of what the weights of both leave: the rest is for activations and the system.
  const int64_t room = (facts.machine.memory_bytes - kWorkers * model.weight_bytes) / 2;
  const int64_t mebibytes = (std::min(wanted, std::max<int64_t>(room, 0)) >> 20) + 1;
  return absl::StrCat("setu up ", model.path, " --numerics ",
                      model.numerics.substr(0, model.numerics.find('/')), model.load_flags,
                      " --threads ", facts.machine.threads, " --kv-memory ", mebibytes, "MiB");
}

std::string DoctorText(const DoctorFacts& facts) {
  std::string text = MachineText(facts.machine);
  if (!facts.model) {
    return absl::StrCat(text, "\nGive --model FILE to measure what it can do with a model.\n");
  }
  return absl::StrCat(text, ModelText(*facts.model), AdviceText(*facts.model), "\nrun\n  ",
                      RecommendedCommand(facts), "\n");
}

std::string DoctorJson(const DoctorFacts& facts) {
  const MachineFacts& m = facts.machine;
  nlohmann::ordered_json json;
  json["machine"] = {{"cpu", m.cpu},
                     {"cores", m.cores},
                     {"threads", m.threads},
                     {"isas", m.isas},
                     {"l3_bytes", m.l3_bytes},
                     {"memory_bytes", m.memory_bytes},
                     {"huge_pages", m.huge_pages}};
  if (m.quota) json["machine"]["quota"] = *m.quota;
  if (!facts.model) return json.dump(2) + "\n";
  const ModelFacts& model = *facts.model;
  const roofline::Peaks& peaks = model.step.peaks;
  json["model"] = {{"path", model.path},
                   {"name", model.name},
                   {"quantization", model.quantization},
                   {"numerics", model.numerics},
                   {"isa", model.isa},
                   {"weight_bytes", model.weight_bytes},
                   {"huge_bytes", model.huge_bytes},
                   {"kv_token_bytes", model.step.shape.kv_token_bytes},
                   {"pool_tokens", model.pool_tokens}};
  json["peaks"] = {{"bytes_per_second", peaks.bytes_per_second},
                   {"operations_per_second", peaks.operations_per_second},
                   {"ridge", peaks.ridge()},
                   {"cache_resident", peaks.cache_resident()}};
  json["context"] = model.context;
  for (const Expected& e : Expectations(model)) {
    json["expected"].push_back({{"what", e.what},
                                {"tokens_per_second", e.tokens_per_second},
                                {"roof_share", e.roof_share},
                                {"limit", Name(e.limit)}});
  }
  const roofline::Advice advice = Advise(model.step, LoadOf(model));
  json["advice"] = {{"largest_batch", LargestBatch(model)},
                    {"int8_weights", advice.int8_weights},
                    {"int4_weights", advice.int4_weights},
                    {"int8_kv", advice.int8_kv},
                    {"prefill_per_decode", advice.prefill_per_decode}};
  if (advice.ridge_batch) json["advice"]["ridge_batch"] = *advice.ridge_batch;
  json["run"] = RecommendedCommand(facts);
  return json.dump(2) + "\n";
}

}  // namespace setu::cli
