#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages and makes the stubs of the public API once, then runs generate.js.
#
#   deploy/examples/node/run.sh 127.0.0.1:50051 "What is a bridge?"
set -euo pipefail
source "$(dirname "$0")/../../local/help.sh"
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
made=$root/build/examples/node

mkdir -p "$made"
if ! cmp -s "$here/package.json" "$made/installed.json"; then
  echo "Installing the packages into $made (once; it takes half a minute)" >&2
  cp "$here/package.json" "$made/"
  npm install --prefix "$made" --no-audit --no-fund --silent
  cp "$here/package.json" "$made/installed.json"
fi
protoc -I "$root/proto" --plugin="$made/node_modules/.bin/protoc-gen-es" --es_out="$made" \
  "$root/proto/setu/v1/inference.proto"
cp "$here/generate.js" "$made/"
exec node "$made/generate.js" "$@"
