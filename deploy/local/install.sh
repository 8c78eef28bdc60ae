#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing, as root or with sudo: those of packages.txt, or
# those named. With nothing missing it takes a moment and asks nobody.
#
#   deploy/local/install.sh [PACKAGE...]
set -euo pipefail
source "$(dirname "$0")/help.sh"
here=$(cd "$(dirname "$0")" && pwd)

missing=()
while read -r package; do
  [[ -z $package || $package == \#* ]] && continue
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' && continue
  # A program of that name that came another way (a newer npm, say) serves as well.
  command -v "$package" >/dev/null && continue
  missing+=("$package")
done < <(if (($# > 0)); then printf '%s\n' "$@"; else cat "$here/packages.txt"; fi)
((${#missing[@]} == 0)) && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null ||
    { echo "install.sh: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "Installing ${#missing[@]} packages: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
{ "${as_root[@]}" apt-get update -qq &&
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; } ||
  { echo "install.sh: apt-get failed; is the network there, and is this Debian 12?" >&2; exit 1; }
