#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Environment variables: a mistyped one is reported, and documents name only existing ones.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1 bazelw=$PWD/$2
shift 2
documents=("$@")
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
err=$work/err

# answers CODE TEXT NAME=VALUE ARGUMENT...: expects weft's exit code, and what it says; an empty
# text: nothing
answers() {
  local wanted=$1 text=$2 got=0
  shift 2
  env "$1" "$weft" "${@:2}" >/dev/null 2>"$err" </dev/null || got=$?
  [ "$got" = "$wanted" ] || fail "$*: exit $got, not $wanted: $(cat "$err")"
  if [ -z "$text" ]; then
    [ ! -s "$err" ] || fail "$*: $(cat "$err")"
  else
    grep -qF -- "$text" "$err" || fail "$*: no '$text' in: $(cat "$err")"
  fi
}

answers 0 "weft: WEFT_BACKND in the environment is not a variable" WEFT_BACKND=scalar backends
answers 0 "" WEFT_TEST_SEED=1 backends
answers 0 "" WEFT_PEER_LISTN=:1 backends # does not concern this command
answers 2 "WEFT_PEER_LISTN in the environment is not an option" WEFT_PEER_LISTN=:1 peer tracker
answers 2 "WEFT_PEER_log_level in the environment is not an option" WEFT_PEER_log_level=debug peer tracker
answers 2 "--listen needs" WEFT_PEER_LISTEN=nonsense peer tracker
answers 2 "--listen needs" WEFT_PEER_OUTPUT=x peer tracker --listen nonsense # an option of another subcommand
answers 0 "" WEFT_PEER_LISTN=:1 peer tracker --help

# What bazelw sets for Bazel reaches what Bazel runs.
WEFT_BAZEL=$weft "$bazelw" backends >/dev/null 2>"$err" || fail "bazelw: $(cat "$err")"
[ ! -s "$err" ] || fail "run by bazelw: $(cat "$err")"

# Relative names are resolved where the user is when `bazel run` starts the program elsewhere, and
# where bazelw was called outside the tree. That variable alone counts for nothing: then no Bazel
# runs the program.
mkdir -p -- "$work/user" "$work/tree"
printf 'a file' >"$work/user/here"
names=(store encode here --output-dir)
BUILD_WORKING_DIRECTORY=$work/user "$weft" "${names[@]}" "$work/1" >/dev/null || fail "bazel run in a folder"
BUILD_WORKING_DIRECTORY=$work/tree WEFT_CALLED_FROM=$work/user "$weft" "${names[@]}" "$work/2" >/dev/null || fail "bazelw run elsewhere"
WEFT_CALLED_FROM=$work/user "$weft" "${names[@]}" "$work/3" >/dev/null 2>&1 && fail "a variable that bazelw left"

# Each option of weft peer has its variable.
mapfile -t options < <(for word in source join tracker; do "$weft" peer "$word" --help; done | sed -n 's/^  --\([a-z-]*\)=.*/\1/p' | sort -u)
[ "${#options[@]}" -ge 20 ] || fail "only ${#options[@]} options of weft peer were found"
for option in "${options[@]}"; do
  variable=${option^^}
  env "WEFT_PEER_${variable//-/_}=x" "$weft" peer tracker --listen nonsense >/dev/null 2>"$err" </dev/null && fail "$option"
  if grep -q "is not an option" "$err"; then fail "$option has no variable: $(cat "$err")"; fi
done

# What --help lists is documented, and what documents set, or call a variable, exists.
"$weft" --help | sed -n 's/^  \(WEFT_[A-Z_]*\)=.*/\1/p' >"$work/listed"
[ "$(wc -l <"$work/listed")" -ge 3 ] || fail "--help lists: $(cat "$work/listed")"
while read -r name; do
  grep -qF -- "${name%OPTION}" "${documents[@]}" || fail "$name is in no document"
done <"$work/listed"
# shellcheck disable=SC2016 # backquotes in the text
grep -ohE 'WEFT_[A-Z0-9_]+=|environment `?WEFT_[A-Z0-9_]+|`WEFT_[A-Z0-9_]+` (set|names|naming)|\(`WEFT_[A-Z0-9_]+`\)' "${documents[@]}" |
  grep -oE 'WEFT_[A-Z0-9_]+' | sort -u >"$work/named"
[ "$(wc -l <"$work/named")" -ge 5 ] || fail "documents name only: $(cat "$work/named")"
while read -r name; do
  case $name in
    WEFT_PEER_*) answers 2 "--listen needs" "$name=x" peer tracker --listen nonsense ;;
    WEFT_BACKEND) answers 0 "" "$name=scalar" backends ;;
    *) answers 0 "" "$name=" backends ;;
  esac
done <"$work/named"

rm -rf -- "$work"
[ "$failures" -eq 0 ]
