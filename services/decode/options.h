// SPDX-License-Identifier: Apache-2.0
#ifndef SETU_SERVICES_DECODE_OPTIONS_H_
#define SETU_SERVICES_DECODE_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/clock.h"

namespace setu::decode {

struct WorkerOptions {
  int32_t max_running = 64;           // sequences; the runner's rows and logits bound it too
  int32_t grant_output_tokens = 256;  // promised per choice; beyond it a sequence grows
  int32_t resume_watermark = 8;       // blocks that a resumed sequence must leave unpromised
  int32_t unsent_tokens = 256;        // a choice this far ahead of its reader is skipped,
  Duration stall_limit = std::chrono::seconds(30);     // this long at most
  Duration transfer_stall = std::chrono::seconds(10);  // since the manifest or the last frame
  int32_t chunk_tokens = 128;  // of prompts, computed beside the batch; 0: none are
  int32_t itl_target_ms = 0;   // a step with prompts shall take no longer; 0: any time
  bool prefix_cache = true;    // what was computed is found again by its ids
  size_t inbox_events = 8192;
  std::string incarnation;  // empty: random
};

}  // namespace setu::decode

#endif  // SETU_SERVICES_DECODE_OPTIONS_H_
