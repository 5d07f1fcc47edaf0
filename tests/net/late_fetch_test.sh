#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who comes to a fetch when others have a part of it already: he has all, of a file that is longer than 64 segments,
# too, and where the source has no room for him; where all hold few he ends with 1, and the others have theirs.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 6000000 /dev/urandom >in.bin # 92 segments, at 24 Mbit/s 2 s to send once

# fetch EXPECTED SOURCE_OPTION [VIEWER_OPTION]: of the late one
fetch() {
  local expected=$1 source first second late code i
  rm -f ./*.bin.out
  start source source --input in.bin --listen 127.0.0.1:0 --upload 24M "$2"
  source=$pid
  port=$(port_of source) || fail "the source did not start"
  start first join --source "127.0.0.1:$port" --upload 24M --output first.bin.out "${@:3}"
  first=$pid
  start second join --source "127.0.0.1:$port" --upload 24M --output second.bin.out "${@:3}"
  second=$pid
  for ((i = 0; i < 400; i++)); do # well past what 16 segments are
    [ "$(stat -c %s first.bin.out 2>/dev/null || echo 0)" -ge 2500000 ] && break
    sleep 0.02
  done
  start late join --source "127.0.0.1:$port" --upload 24M --output late.bin.out --timeout 3 "${@:3}"
  late=$pid
  wait "$late"
  code=$?
  [ "$code" -eq "$expected" ] || fail "$2: the late one ends with $code"
  [ "$code" -ne 0 ] || cmp in.bin late.bin.out || fail "$2: the late one has other bytes"
  wait "$first" || fail "$2: the first ends with $?"
  wait "$second" || fail "$2: the second ends with $?"
  wait "$source" || fail "$2: the source ends with $?"
  cmp in.bin first.bin.out || fail "$2: the first has other bytes"
  cmp in.bin second.bin.out || fail "$2: the second has other bytes"
}

fetch 0 --linger=5
fetch 0 --neighbours=1 # it takes two
fetch 1 --window=16 --window=16
exit "$bad"
