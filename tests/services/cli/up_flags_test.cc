// SPDX-License-Identifier: Apache-2.0
#include "services/cli/up_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace setu::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

UpFlags Parsed(std::vector<const char*> arguments) {
  UpFlags flags;
  config::Options options("setu up", "Tests.", {});
  flags.AddTo(options);
  NullLogger logger;
  arguments.insert(arguments.begin(), {"setu", "m.gguf"});
  const auto parsed =
      options.Parse(static_cast<int>(arguments.size()), arguments.data(), {}, logger);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return flags;
}

TEST(UpFlags, AreWhatTheWorkersAreTold) {
  const UpFlags flags = Parsed({"--kv-dtype", "int8", "--numerics", "f32"});
  const auto told = flags.WorkerArguments({.threads = 3, .kv_bytes = 4096}, /*pinned=*/false);
  for (const char* argument :
       {"--model=m.gguf", "--kv-dtype=int8", "--numerics=f32", "--threads=3", "--kv-memory=4096",
        "--pin-threads=off", "--allow-mixed-numerics=false", "--prefix-cache=true",
        "--cache-packed=false"}) {
    EXPECT_THAT(told, Contains(argument));
  }
}

TEST(UpFlags, MixedNumericsAreAllowedToAllOrNone) {
  const UpFlags flags = Parsed({"--allow-mixed-numerics"});
  EXPECT_THAT(flags.WorkerArguments({}, false), Contains("--allow-mixed-numerics=true"));
  EXPECT_THAT(flags.RouterArguments(), Contains("--allow-mixed-numerics=true"));
}

TEST(UpFlags, PackedWeightsAreTheWorkersAlone) {
  const UpFlags flags = Parsed({"--cache-packed"});
  EXPECT_THAT(flags.WorkerArguments({}, false), Contains("--cache-packed=true"));
  EXPECT_THAT(flags.RouterArguments(), Not(Contains(HasSubstr("cache-packed"))));
}

TEST(UpFlags, TokensAndTheSecretAreTheRoutersAlone) {
  const UpFlags flags = Parsed({"--auth-tokens", "t.yaml", "--cluster-secret", "s"});
  EXPECT_THAT(flags.RouterArguments(),
              AllOf(Contains("--auth-tokens=t.yaml"), Contains("--cluster-secret=s")));
  EXPECT_THAT(Parsed({}).RouterArguments(), Not(Contains(HasSubstr("auth-tokens"))));
}

TEST(UpFlags, HowLongAPromptWaitsIsTheRoutersAlone) {
  const UpFlags flags = Parsed({"--queue-timeout", "2.5s"});
  EXPECT_THAT(flags.RouterArguments(), Contains("--queue-timeout=2500ms"));
  EXPECT_THAT(flags.WorkerArguments({}, false), Not(Contains(HasSubstr("queue"))));
  EXPECT_THAT(Parsed({}).RouterArguments(), Contains("--queue-timeout=30000ms"));
}

TEST(UpFlags, TracesAreTheRoutersAlone) {
  const UpFlags flags = Parsed({"--otlp-endpoint", "127.0.0.1:4317"});
  EXPECT_THAT(flags.RouterArguments(), Contains("--otlp-endpoint=127.0.0.1:4317"));
  EXPECT_THAT(flags.WorkerArguments({}, false), Not(Contains(HasSubstr("otlp"))));
  EXPECT_THAT(Parsed({}).RouterArguments(), Not(Contains(HasSubstr("otlp"))));
}

TEST(UpFlags, WorkersPinTheirThreadsWhereTheyHaveCoresOfTheirOwn) {
  EXPECT_THAT(Parsed({}).WorkerArguments({}, /*pinned=*/true), Contains("--pin-threads=on"));
}

}  // namespace
}  // namespace setu::cli
