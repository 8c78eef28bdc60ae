#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python environment and the stubs of the public API once, then runs generate.py.
#
#   deploy/examples/python/run.sh 127.0.0.1:50051 "What is a bridge?"
set -euo pipefail
source "$(dirname "$0")/../../local/help.sh"
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
made=$root/build/examples/python

if ! cmp -s "$here/requirements.txt" "$made/requirements.txt"; then
  echo "Making a Python environment in $made (once; it takes half a minute)" >&2
  rm -rf "$made"
  python3 -m venv "$made"
  "$made/bin/pip" --disable-pip-version-check install -q -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$made/requirements.txt"
fi
mkdir -p "$made/stubs"
"$made/bin/python" -m grpc_tools.protoc -I "$root/proto" --python_out="$made/stubs" \
  --grpc_python_out="$made/stubs" "$root/proto/setu/v1/inference.proto"
PYTHONPATH=$made/stubs exec "$made/bin/python" "$here/generate.py" "$@"
