#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benches of device rows refuse numbers of repetitions that they have no room for, with and without a device.
# $@: the programs.
set -u
for program in "$@"; do
  for reps in 0 -1 102 nine; do
    "$program" ceilings all "$reps" >"$TEST_TMPDIR/out" 2>&1
    code=$?
    if [ "$code" -ne 2 ]; then
      echo "$program with $reps repetitions ended with $code: $(cat "$TEST_TMPDIR/out")"
      exit 1
    fi
  done
done
