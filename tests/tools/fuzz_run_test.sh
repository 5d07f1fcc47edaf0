#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/fuzz/run, with a Bazel and a fuzzer of its own: what fails there must not look like a run.
set -uo pipefail
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/fuzz_run.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
mkdir -p "$work/tools/fuzz" "$work/bazel-bin/x" "$work/x/corpus"
cp -- "$1" "$work/tools/fuzz/run"
echo seed >"$work/x/corpus/one"
cat >"$work/bazelw" <<'EOF'
#!/bin/sh
case "$1 $*" in
  query*labels*)
    [ "$BROKEN" != labels ] || exit 7
    [ "$BROKEN" = empty ] || echo //x:corpus/one
    ;;
  query*)
    [ "$BROKEN" != targets ] || exit 7
    echo //x:y_fuzzer
    ;;
esac
EOF
cat >"$work/bazel-bin/x/y_fuzzer" <<'EOF'
#!/bin/sh
case $1 in
  -merge=1) [ "$BROKEN" != merge ] || { echo no merge; exit 7; } ;;
  *) [ "$BROKEN" != fuzzer ] || { echo crash; exit 7; }; echo stat::number_of_executed_units: 1 ;;
esac
EOF
chmod +x "$work/bazelw" "$work/bazel-bin/x/y_fuzzer"

failed=0
expect() { # HOW_IT_IS_BROKEN CODE [TEXT]: of a run with --keep
  local code
  BROKEN=$1 WEFT_FUZZ_OUT=$work/out TMPDIR=$work "$work/tools/fuzz/run" --keep >"$work/log" 2>&1
  code=$?
  if [ "$code" -ne "$2" ] || { [ $# -gt 2 ] && ! grep -q -- "$3" "$work/log"; }; then
    printf 'FAIL: broken: %s: exit %s, and said\n%s\n' "$1" "$code" "$(cat -- "$work/log")" >&2
    failed=1
  fi
}
expect nothing 0 'from 1 inputs'
expect empty 0 'from 0 inputs'
expect fuzzer 1 'FAILED; the input is in'
expect merge 1 'was not added to x/corpus'
expect targets 7
expect labels 7
grep -q inputs "$work/log" && {
  printf 'FAIL: it ran without its corpus\n' >&2
  failed=1
}
exit "$failed"
