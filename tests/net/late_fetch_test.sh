#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node that joins a fetch when others have a part of it gets the whole file, even if that is
# longer than 64 segments, the source has no room for the node, no other holds the beginning any
# more, or the source leaves.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 6000000 /dev/urandom >in.bin # 92 segments; at 24 Mbit/s, sending them once takes 2 s

# fetch SOURCE_OPTION [VIEWER_OPTION]
fetch() {
  local source first second late
  rm -f ./*.bin.out
  start source source --input in.bin --listen 127.0.0.1:0 --upload 24M "$1"
  source=$pid
  port=$(port_of source) || fail "the source did not start"
  start first join --source "127.0.0.1:$port" --upload 24M --output first.bin.out "${@:2}"
  first=$pid
  start second join --source "127.0.0.1:$port" --upload 24M --output second.bin.out "${@:2}"
  second=$pid
  until_grown first.bin.out 2500000 # well past 16 segments
  start late join --source "127.0.0.1:$port" --upload 24M --output late.bin.out --timeout 3 "${@:2}"
  late=$pid
  wait "$late" || fail "$1: the late one ends with $?"
  wait "$first" || fail "$1: the first ends with $?"
  wait "$second" || fail "$1: the second ends with $?"
  wait "$source" || fail "$1: the source ends with $?"
  cmp in.bin late.bin.out || fail "$1: the late one has other bytes"
  cmp in.bin first.bin.out || fail "$1: the first has other bytes"
  cmp in.bin second.bin.out || fail "$1: the second has other bytes"
}

fetch --linger=5
fetch --neighbours=1 # it takes two
fetch --window=16 --window=16

# The source leaves when one node has everything, of which that node holds a sixth. A node that came
# shortly before gets the rest from what the first reads back from its output; for what was cut from
# that meanwhile, it gets nothing. The source is stopped while the second node starts: a node that
# has everything and no neighbour leaves at once, and a busy machine may take long to start the
# second one.
orphaned() { # EXPECTED of the newcomer, UPLOAD of the first, SIGNAL to the source
  local source first late code
  rm -f ./*.bin.out
  start source source --input in.bin --listen 127.0.0.1:0 --upload 24M
  source=$pid
  start first join --source "127.0.0.1:$(port_of source)" --output first.bin.out --window 16 --upload "$2" --linger 60
  first=$pid
  until_grown first.bin.out 4000000
  kill -STOP "$source"
  start late join --source "127.0.0.1:$(port_of first)" --output late.bin.out --timeout 3
  late=$pid
  until_said late 'info stream'
  kill -CONT "$source"
  until_said first 'info ended'
  kill -"$3" "$source"
  cmp in.bin first.bin.out || fail "the first of an orphaned fetch has other bytes"
  [ "$1" -eq 0 ] || : >first.bin.out
  wait "$late"
  code=$?
  [ "$code" -eq "$1" ] || fail "who came before the source went ends with $code, not $1"
  [ "$code" -ne 0 ] || cmp in.bin late.bin.out || fail "who came before the source went has other bytes"
  wait "$first" || fail "the first of an orphaned fetch ends with $?"
  [ "$(grep -c '^warning reread segment=[0-9]* status=WEFT_E_IO$' first.log)" -eq "$1" ] ||
    fail "that it cannot be read back is not told once, or was read back"
}

orphaned 0 24M KILL
orphaned 1 4M TERM
exit "$bad"
