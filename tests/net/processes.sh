#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For tests that run peers in the background: a folder to work in, $pids that are killed at the end, and fail, which
# shows the logs there and sets $bad. Paths of the arguments must be whole before this is read.
set -uo pipefail
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/peers.XXXXXX")
cd -- "$work" || exit 1
pids=()
bad=0

# shellcheck disable=SC2317 # called by the trap
finish() {
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf -- "$work"
}
trap finish EXIT

fail() {
  printf 'FAIL: %s\n' "$1" >&2
  for log in ./*.log; do
    printf -- '--- %s\n' "$log" >&2
    tail -n 20 "$log" >&2
  done
  # shellcheck disable=SC2034 # what the test ends with
  bad=1
}
