#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For tests of peers as processes; to be sourced. Makes a folder to work in, kills $pids at the end,
# and defines fail, which prints the logs there and sets $bad, and functions that start peers or
# expect them to end. After it, $weft is the program and the arguments' paths are absolute.
set -uo pipefail
weft_peer=("$weft" peer)
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
  # shellcheck disable=SC2034 # the test's exit code
  bad=1
}

# start NAME ARGUMENT...: starts a peer in the background; sets $pid, logs to NAME.log
start() {
  local name=$1
  shift
  : >"$name.log" # the shell that starts it may be slow, and an earlier peer may have had that name
  "${weft_peer[@]}" "$@" <&0 2>"$name.log" 7>&- 8>&- & # 7, 8: pipes of peer_test.sh, whose end must be seen
  pid=$!
  pids+=("$pid")
}

# Prints the port that NAME.log says it listens on.
port_of() {
  local i text
  for ((i = 0; i < 200; i++)); do
    text=$(sed -n "s/.* listen=[^ ]*:\([0-9]*\).* ${2:-metrics}=\([0-9]*\).*/\1 \2/p" "$1.log" | head -n 1)
    if [ -n "$text" ]; then
      [ "${2:-}" = metrics ] && printf '%s\n' "${text#* }" || printf '%s\n' "${text% *}"
      return 0
    fi
    sleep 0.05
  done
  return 1
}

# expect CODE TEXT ARGUMENT...: weft peer must end with the code, and say so on standard error
expect() {
  local code=$1 text=$2 got
  shift 2
  timeout 20 "${weft_peer[@]}" "$@" >/dev/null 2>error.txt </dev/null
  got=$?
  [ "$got" -eq "$code" ] || fail "weft peer $*: exit $got, not $code: $(tail -n 1 error.txt)"
  grep -qF -- "$text" error.txt || fail "weft peer $*: no '$text' in: $(tail -n 3 error.txt)"
}

# until_line FILE TEXT: waits until a line of FILE begins so, and fails if none does
until_line() {
  local i
  for ((i = 0; i < 600; i++)); do
    grep -aqs "^$2" "$1" && return 0
    sleep 0.05
  done
  fail "$1 has no line: $2"
}

# until_said NAME TEXT: the same for NAME.log
until_said() { until_line "$1.log" "$2"; }

# until_grown FILE BYTES: waits until FILE has that many, and fails if it never does
until_grown() {
  local i
  for ((i = 0; i < 1500; i++)); do
    [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -ge "$2" ] && return 0
    sleep 0.02
  done
  fail "$1 has no $2 bytes"
}

# http_get HOST PORT PATH FILE [HEADER]: writes the body to FILE, the whole answer to FILE.raw
http_get() {
  exec 9<>"/dev/tcp/$1/$2" || return 1
  printf 'GET %s HTTP/1.0\r\nHost: %s\r\n%s\r\n' "$3" "$1" "${5:+$5$'\r\n'}" >&9
  cat <&9 >"$4.raw"
  exec 9>&-
  # What follows the empty line.
  LC_ALL=C sed '1,/^\r$/d' "$4.raw" >"$4"
}
