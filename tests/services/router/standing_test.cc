// SPDX-License-Identifier: Apache-2.0
#include "services/router/standing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/wire/convert.h"

namespace setu::router {
namespace {

using worker::v1::ROLE_DECODE;
using worker::v1::ROLE_PREFILL;

constexpr uint64_t kTokenizer = 0xabc;

Worker Decode() {
  Worker worker;
  worker.address = "d:1";
  worker.description.set_role(ROLE_DECODE);
  worker.description.set_wire_version_min(wire::kWireVersion);
  worker.description.set_wire_version_max(wire::kWireVersion);
  worker.description.mutable_fingerprint()->set_tokenizer(kTokenizer);
  worker.description.mutable_fingerprint()->set_numerics("f32/r1");
  worker.load.set_ready(true);
  return worker;
}

std::string Line(const Worker& worker, worker::v1::Role listed = ROLE_DECODE) {
  return LineAbout(listed, worker.address, Alone(worker, listed, kTokenizer));
}

TEST(Standing, AWorkerByItself) {
  Worker worker = Decode();
  EXPECT_EQ(Line(worker), "decode worker d:1 is ready");
  worker.load.set_ready(false);
  EXPECT_EQ(Line(worker), "decode worker d:1 is in sight and not ready yet");
  worker.load.set_draining(true);
  EXPECT_EQ(Line(worker), "decode worker d:1 drains: it gets nothing new");
}

TEST(Standing, AMisfitSaysWhatDiffersAndWhatToDo) {
  const std::string start = "decode worker d:1 does not fit and gets nothing: ";
  EXPECT_EQ(Line(Decode(), ROLE_PREFILL),
            "prefill worker d:1 does not fit and gets nothing: its role is decode, it is listed "
            "under --prefill; list it under the flag of its role");
  Worker worker = Decode();
  worker.description.mutable_fingerprint()->set_tokenizer(0xdef);
  EXPECT_EQ(Line(worker), start +
                              "its digest of the tokenizer is def, this router's abc; start both "
                              "with the same --model");
  worker.description.set_wire_version_min(wire::kWireVersion + 1);
  worker.description.set_wire_version_max(wire::kWireVersion + 2);
  EXPECT_EQ(Line(worker),
            start + absl::StrCat("it speaks wire versions ", wire::kWireVersion + 1, " to ",
                                 wire::kWireVersion + 2, ", this router ", wire::kWireVersion,
                                 "; run the same release on both"));
  Worker prefill = Decode();
  prefill.address = "p:1";
  prefill.description.set_role(ROLE_PREFILL);
  prefill.description.mutable_fingerprint()->set_numerics("int8/r1");
  EXPECT_EQ(LineAbout(ROLE_DECODE, "d:1", Unpaired(Decode(), prefill, wire::Mixing::kRefused)),
            start +
                "numeric path is f32/r1 here and int8/r1 there, at prefill worker p:1; start all "
                "workers with the same release, --model, --numerics, --kv-dtype and --weights, or "
                "these and the router with --allow-mixed-numerics");
  prefill.description.mutable_fingerprint()->set_model(9);
  EXPECT_THAT(Unpaired(Decode(), prefill, wire::Mixing::kRefused).why,
              ::testing::EndsWith("and --weights"))
      << "no flag would let these two pair";
}

TEST(Standing, MixingPairsWorkersThatAllAllowIt) {
  using wire::Mixing;
  Worker decode = Decode(), prefill = Decode();
  prefill.description.mutable_fingerprint()->set_numerics("int8/r1");
  const auto allow = [](Worker& worker) {
    worker.description.mutable_fingerprint()->set_allow_mixed_numerics(true);
  };
  const std::string path = "numeric path is f32/r1 here and int8/r1 there";
  EXPECT_EQ(Difference(decode, prefill, Mixing::kAllowed), path);
  allow(prefill);
  EXPECT_EQ(Difference(decode, prefill, Mixing::kAllowed),
            "--allow-mixed-numerics is missing here and given there");
  EXPECT_EQ(Difference(Decode(), decode, Mixing::kAllowed), "");
  allow(decode);
  EXPECT_EQ(Difference(decode, prefill, Mixing::kAllowed), "");
  EXPECT_EQ(Difference(decode, prefill, Mixing::kRefused), path);
  EXPECT_EQ(Difference(decode, Decode(), Mixing::kRefused), "") << "one path, whoever allows what";
}

TEST(Standing, WhatIsWrongIsLouderThanWhatIsExpected) {
  EXPECT_EQ(LevelOf(WorkerState::kMisfit), Logger::Level::kError);
  EXPECT_EQ(LevelOf(WorkerState::kUnreachable), Logger::Level::kWarning);
  for (const WorkerState state : {WorkerState::kUsable, WorkerState::kAwaited,
                                  WorkerState::kNotReady, WorkerState::kDraining}) {
    EXPECT_EQ(LevelOf(state), Logger::Level::kInfo);
  }
}

}  // namespace
}  // namespace setu::router
