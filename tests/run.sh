#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and tests. None of it needs an accelerator.
#
#   tests/run.sh                     what every change must pass
#   tests/run.sh -R kv               the same, only tests whose name matches
#   tests/run.sh --full              also ThreadSanitizer, clang-tidy, long sweeps, clusters of processes
#   tests/run.sh --soak [MINUTES]    load and faults for an hour, or so many minutes
set -euo pipefail
source "$(dirname "$0")/../deploy/local/help.sh"
cd "$(dirname "$0")/.."

labels=quick
case ${1:-} in
  --full) labels='quick|full'; shift ;;
  --soak) labels=soak; shift ;;
esac
filter=("$@")

stage() {  # stage NAME COMMAND...: runs it and says what it cost
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  echo "== $name: $((SECONDS - start)) s"
}

build() {  # build PRESET TARGET
  cmake --preset "$1" >"build/$1.configure.log" || { cat "build/$1.configure.log"; return 1; }
  ninja -C "build/$1" "$2"
}

run_ctest() {  # run_ctest PRESET ARGUMENTS...
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --timeout 600 -j2 "$@"
}

style() {
  git ls-files '*.cc' '*.h' | xargs clang-format --dry-run --Werror
  (cd proto && ../build/venv/bin/buf lint)
}

# The Python that tests use, in a folder of its own, made again when its list changes.
venv() {
  local stamp=build/venv/requirements.txt
  cmp -s tests/requirements.txt "$stamp" && return
  echo "Making a Python environment in build/venv (once; it takes half a minute)"
  rm -rf build/venv
  python3 -m venv build/venv
  build/venv/bin/pip --disable-pip-version-check install -q -r tests/requirements.txt
  cp tests/requirements.txt "$stamp"
}

mkdir -p build
stage packages deploy/local/install.sh
stage python venv
stage model deploy/local/fetch_model.sh
SETU_TEST_MODEL=$(deploy/local/fetch_model.sh)
export SETU_TEST_MODEL
stage style style
if [[ $labels == soak ]]; then
  stage soak tests/fault/soak.sh "${1:-60}"
  exit
fi
if [[ $labels == *full* ]]; then
  stage clang-tidy tests/clang_tidy.sh
  stage "build tsan" build tsan unit_tests
  stage "test tsan" run_ctest tsan -L unit "${filter[@]}"
fi
stage "build asan" build asan unit_tests
stage "test asan" run_ctest asan -L unit "${filter[@]}"
stage "build release" build release all
echo "== test release"
run_ctest release -L "$labels" "${filter[@]}"
