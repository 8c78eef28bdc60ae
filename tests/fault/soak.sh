#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds, and runs load on a cluster of processes whose workers die, leave and freeze and whose
# links go bad, for so many minutes; then one table says what was wrong, lost, held or has grown.
#
#   tests/fault/soak.sh 60
#   SETU_TEST_SOAK_SEED=7 tests/fault/soak.sh 60     other requests and faults
set -euo pipefail
source "$(dirname "$0")/../../deploy/local/help.sh"
cd "$(dirname "$0")/../.."

minutes=${1:-}
[[ $minutes =~ ^[0-9]+$ ]] || { echo "soak.sh: say for how many minutes, as a number" >&2; exit 2; }
mkdir -p build
cmake --preset release >build/release.configure.log || { cat build/release.configure.log; exit 1; }
ninja -C build/release fault_soak_test
SETU_TEST_SOAK_SECONDS=$((minutes * 60)) build/release/test/fault_soak_test
