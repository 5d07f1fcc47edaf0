#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An encode that fails has no rate. $1: bench/store_encode.sh.
set -u
json=$TEST_TMPDIR/store-encode.json
if bash "$1" "$(type -P false)" -s 64K -n 1 -d "$TEST_TMPDIR" -j "$json"; then
  echo 'a program that fails was measured'
  exit 1
fi
if [ -e "$json" ]; then
  echo 'and written down'
  exit 1
fi
bash "$1" "$(type -P true)" -s 64K -n 1 -d "$TEST_TMPDIR" -j "$json" && [ -s "$json" ]
