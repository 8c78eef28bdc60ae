#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over every source of services, common and kernels; needs the compile commands of a
# preset (configured here where they are missing).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || apt-get install -y -qq --no-install-recommends clang-tidy >/dev/null
[[ -f build/release/compile_commands.json ]] || cmake --preset release >/dev/null
ninja -C build/release setu_proto >/dev/null
git ls-files 'services/*.cc' 'common/*.cc' 'kernels/*.cc' |
  xargs -P2 -n1 clang-tidy --quiet -p build/release 2>/dev/null
