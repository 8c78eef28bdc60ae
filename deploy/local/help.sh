#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by every script, before it changes its folder: where its first argument is -h or --help,
# prints the comment that it begins with, and ends it.
case ${1:-} in
  -h | --help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
