#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benches of device rows refuse unknown words, and numbers too large for them, with a message of one line, with and
# without a device. $1, $2: table-bench and tensor-bench.
set -u
table=$1 tensor=$2
failed=0

# refused WHY PROGRAM WORD...: the program exits with 2, and its message of one line contains WHY.
refused() {
  local why=$1 code
  shift
  "$@" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err"
  code=$?
  if [ "$code" -ne 2 ] || [ -s "$TEST_TMPDIR/out" ] || [ "$(wc -l <"$TEST_TMPDIR/err")" -ne 1 ] ||
    ! grep -qF -- "$why" "$TEST_TMPDIR/err"; then
    echo "$* ended with $code, not with 2 and one line that has '$why':"
    cat "$TEST_TMPDIR/out" "$TEST_TMPDIR/err"
    failed=1
  fi
}

for program in "$table" "$tensor"; do
  for reps in 0 -1 102 nine '' 9x; do
    refused "'$reps' is not a number of repetitions" "$program" ceilings all "$reps"
  done
  for word in nothing '' All ceiling --help all,grid; do
    refused "there is no '$word' to measure; there are all, ceilings," "$program" "$word"
  done
  refused "there is no row 'cuda-none'; there are cuda-" "$program" all cuda-none
  refused "there is no row ''; there are cuda-" "$program" all ''
  refused "unexpected argument 'more'" "$program" all all 9 more
done
refused "there is no row 'cuda-none'" "$table" rows cuda-loop,cuda-none
refused 'shape needs four numbers' "$tensor" shape all 9
refused 'shape needs four numbers' "$tensor" shape all 9 1 2 3
refused "'0' is not a size" "$tensor" shape all 9 1 128 0 4096
refused "'4K' is not a size" "$tensor" shape all 9 1 128 128 4K
refused "unexpected argument '9'" "$tensor" shape all 9 1 128 128 4096 9
exit "$failed"
