// SPDX-License-Identifier: Apache-2.0
#include "services/decode/flags.h"

namespace setu::decode {

void AddTo(config::Options& declared, WorkerOptions& options) {
  declared.Add("max-running", &options.max_running, "sequences of one step").Range(1, 1024);
  declared.Add("grant-output-tokens", &options.grant_output_tokens, "promised to each at the start")
      .Range(1, 1 << 20);
  declared.Add("resume-watermark", &options.resume_watermark, "blocks that a resume must spare")
      .Range(0, 1 << 20);
  declared
      .Add("chunk-tokens", &options.chunk_tokens,
           "tokens of prompts that a step may compute beside its batch; 0: none")
      .Range(0, 8192);
  declared
      .Add("itl-target-ms", &options.itl_target_ms,
           "a step that computes prompts shall take no longer; 0: as long as they need")
      .Range(0, 60000);
  declared.Add("stall-limit", &options.stall_limit, "patience with a client that does not read")
      .Range(1, 3600);
  declared.Add("prefix-cache", &options.prefix_cache,
               "keep the KV of prompts for those that start alike");
}

}  // namespace setu::decode
