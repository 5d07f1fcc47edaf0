#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A tree in a folder whose name Debian's Bazel cannot read is refused in words that say so, and nothing is installed.
# $1: bazelw.
set -u
if ! { command -v dpkg-query && command -v apt-get; } >/dev/null; then
  echo 'SKIPPED: not a Debian system'
  exit 0
fi
folder=$TEST_TMPDIR/wéft
mkdir -p -- "$folder/tools"
cp -L -- "$1" "$folder/bazelw"
printf '[build]\n' >"$folder/tools/packages.txt"
: >"$folder/WORKSPACE"
cd -- "$folder" || exit 1
code=0
env -u WEFT_BAZEL ./bazelw --output_user_root="$TEST_TMPDIR/out" info release >"$TEST_TMPDIR/said" 2>&1 || code=$?
if [ "$code" -ne 1 ] || ! grep -F 'only letters of ASCII' "$TEST_TMPDIR/said" >/dev/null; then
  echo "bazelw ended with $code and said:"
  cat "$TEST_TMPDIR/said"
  exit 1
fi
