#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to a streamed answer: installs, builds, fetches the default model, starts router,
# prefill and decode on the loopback, asks one question, and stops everything again.
#
#   deploy/local/demo.sh
#   deploy/local/demo.sh "Name three famous bridges."
set -euo pipefail
source "$(dirname "$0")/help.sh"
cd "$(dirname "$0")/../.."
prompt=${1:-Explain in two sentences what a bridge is good for.}

deploy/local/install.sh
model=$(deploy/local/fetch_model.sh)
mkdir -p build
cmake --preset release >build/release.configure.log || { cat build/release.configure.log >&2; exit 1; }
ninja -C build/release setu setu-router setu-prefill setu-decode

bin=build/release/bin
log=build/demo.log
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
echo "Starting router, prefill and decode, and loading the model (log: $log)"
exec {up_output}< <(exec "$bin/setu" up "$model" --port "$port" 2>"$log")
up=$!
stop() {
  kill -TERM "$up" 2>/dev/null && while read -r -u "$up_output"; do :; done
}
trap stop EXIT

# `setu up` prints its box when the cluster is ready, and nothing before.
ready=
while read -r -u "$up_output" line; do
  [[ $line == '| Setu serves'* ]] && ready=yes && break
done
[[ -n $ready ]] || { echo "demo.sh: the cluster did not start:" >&2; tail -n 20 "$log" >&2; exit 1; }

echo
echo "> $prompt"
"$bin/setu" generate --address "127.0.0.1:$port" --chat --temperature 0 --max-tokens 128 --figures \
  "$prompt"
