#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stream on demand starts to play when enough of it is there: with --startup 0 its first segment,
# else as much as it says. With an uplink of a quarter of the rate, a second of it takes four.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 400000 /dev/urandom >in.bin
start source source --input in.bin --rate 800k --upload 200k --segment-blocks 4 --listen 127.0.0.1:0
source=$pid
at=127.0.0.1:$(port_of source)

# waited NAME OPTION...: prints the milliseconds before it played, alone at the source
waited() {
  local name=$1
  start "$name" join --source "$at" --output "$name.out" "${@:2}"
  until_grown "$name.out" 1
  kill -TERM "$pid"
  wait "$pid" || fail "$name ends with $?"
  waited_ms=$(sed -n 's/^info summary .* startup_ms=\([0-9]*\) .*/\1/p' "$name.log")
}

waited none --startup 0
[ "$waited_ms" -lt 2500 ] || fail "with --startup 0 it waited for $waited_ms ms"
waited second
[ "$waited_ms" -ge 2500 ] || fail "with a second of --startup it waited for $waited_ms ms"
waited half --startup 500ms
[ "$waited_ms" -ge 1250 ] || fail "with half a second of --startup it waited for $waited_ms ms"
kill -TERM "$source"
wait "$source" || fail "the source ends with $?"
exit "$bad"
