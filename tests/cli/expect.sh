#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that call weft as users do; to be sourced. Failures are counted in $failures.
# shellcheck disable=SC2034,SC2154 # scripts use what it sets, and set $program

failures=0

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

# expect CODE ARGUMENT...: runs "${program[@]}" with them; expects the code; output in `out` and
# `err`
expect() {
  local wanted=$1 got=0
  shift
  "${program[@]}" "$@" >out 2>err </dev/null || got=$?
  [ "$got" = "$wanted" ] || fail "${program[*]} $*: exit $got, not $wanted: $(cat err)"
}

says() { grep -q -- "$1" "$2" || fail "no '$1' in $2: $(cat "$2")"; }

# wrong CODE TEXT ARGUMENT...: as expect, and `err` says so, and nothing else
wrong() {
  local code=$1 text=$2
  shift 2
  expect "$code" "$@"
  says "$text" err
  [ ! -s out ] || fail "${program[*]} $*: output beside the error"
}

# plotted FOLDER NAME: gnuplot draws FOLDER/NAME.gp; if there is no gnuplot, that is reported once
plotted() {
  command -v gnuplot >/dev/null || { [ -n "${plotless:-}" ] || printf 'skipped: no gnuplot on PATH, so no script is drawn\n'; plotless=yes; return; }
  (cd -- "$1" && gnuplot "$2.gp") >plotted 2>&1 || fail "$1/$2.gp: $(cat plotted)"
  [ -s "$1/$2.pdf" ] || fail "$1/$2.gp draws nothing"
}
