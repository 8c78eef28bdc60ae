#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy (.clang-tidy) over every source of services, common and kernels, or those named. It
# needs compile commands without gcc's precompiled headers and the headers generated from proto; it
# compiles nothing.
#
#   tests/clang_tidy.sh [FILE...]
set -euo pipefail
source "$(dirname "$0")/../deploy/local/help.sh"
cd "$(dirname "$0")/.."
cmake --preset release -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
ninja -C build/tidy setu_proto_sources >/dev/null
if (($# > 0)); then printf '%s\n' "$@"; else git ls-files 'services/*.cc' 'common/*.cc' 'kernels/*.cc'; fi |
  xargs -P2 -n2 clang-tidy-19 --quiet -p build/tidy --extra-arg=-Wno-unknown-warning-option \
    --extra-arg=-Wno-unused-command-line-argument 2> >(grep -v ' warnings generated' >&2)
