#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft bench rlnc --peers`: another library is measured in the same rounds, wrong results are never
# timed, and what cannot be measured is left out with a line that says why.
set -euo pipefail
weft=$1
peer=$(realpath -- "$2")
out=$TEST_TMPDIR/out

fail() {
  printf 'rlnc_peers_test: %s\n' "$1" >&2
  cat -- "$out" >&2
  exit 1
}

# run STATUS OPTION...: runs the bench with further options; its exit status must be STATUS.
run() {
  local -r wanted=$1
  shift
  local status=0
  "$weft" bench rlnc --quick --rep-ms 1 --n 8 --k 130 --threads 1 --isal '' --seed 1 "$@" >"$out" 2>&1 || status=$?
  [ "$status" = "$wanted" ] || fail "exit status $status for $wanted: $*"
}

says() {
  grep -Fq -- "$1" "$out" || fail "does not say: $1"
}

run 0 --peers "$peer" --json "$TEST_TMPDIR/report.json"
for operation in encode-fresh recode recode-one decode-deferred; do
  grep -Eq "^  $operation +example 1 " "$out" || fail "no $operation"
  grep -Fq "\"operation\": \"$operation\"" "$TEST_TMPDIR/report.json" || fail "$operation is not in the report"
done
[ "$(grep -Fc 'best row / example 1' "$out")" = 4 ] || fail 'not four ratios'
! grep -q 'decodes$' "$out" || fail 'says that its packets do not decode'

# Operations that were not requested are not measured.
run 0 --peers "$peer" --operations encode
! grep -q 'example 1 ' "$out" || fail 'measures what was not asked for'

for call in encode recode decode polynomial; do
  WEFT_TEST_SPOIL=$call run 1 --peers "$peer"
done
WEFT_TEST_SPOIL=recode run 1 --peers "$peer"
says 'example 1 failed to make packets that are what their coefficients say'

run 0 --peers "$peer" --n 65
says 'example 1 is left out: it does not code 65 blocks of 130 bytes'
run 0 --peers "libm.so.6,$TEST_TMPDIR/none.so"
says 'the RLNC library is left out: libm.so.6 has no weft_rlnc_peer_version'
says "the RLNC library is left out: $TEST_TMPDIR/none.so is not here"
run 2 --peers "$peer,$peer,$peer,$peer,$peer"
says '--peers takes at most 4 files'
