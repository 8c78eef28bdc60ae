#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches for an input that breaks one target's property, with libFuzzer, AddressSanitizer and UBSan:
# installs clang where it is missing and builds what the target needs. What reaches new code gathers
# in build/fuzz/corpus/TARGET, an input that breaks something lies in build/fuzz/found.
#
#   tests/fuzz/run.sh TARGET SECONDS [LIBFUZZER_OPTION...]
set -euo pipefail
source "$(dirname "$0")/../../deploy/local/help.sh"
cd "$(dirname "$0")/../.."

(($# >= 2)) || { "$0" --help >&2; exit 2; }
target=$1 seconds=$2
shift 2
seeds=tests/fuzz/corpus/$target
[[ -d $seeds ]] || { echo "run.sh: no target $target; there are: $(ls tests/fuzz/corpus | xargs)" >&2; exit 2; }

deploy/local/install.sh clang-19 libclang-rt-19-dev
mkdir -p "build/fuzz/corpus/$target" build/fuzz/found
cmake --preset fuzz >build/fuzz.configure.log || { cat build/fuzz.configure.log; exit 1; }
ninja -C build/fuzz "fuzz_$target"
# The bounds of one input: bytes, seconds, resident memory and one allocation (MiB).
exec "build/fuzz/test/fuzz_$target" -max_total_time="$seconds" -max_len=16384 -timeout=60 \
  -rss_limit_mb=2048 -malloc_limit_mb=64 -artifact_prefix="build/fuzz/found/$target-" \
  -print_final_stats=1 "$@" "build/fuzz/corpus/$target" "$seeds"
