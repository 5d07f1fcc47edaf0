#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who comes to a fetch when others have a part of it already: he has all, of a file that is longer than 64 segments,
# too, where the source has no room for him, and where nobody holds the beginning any more.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 6000000 /dev/urandom >in.bin # 92 segments, at 24 Mbit/s 2 s to send once

# fetch SOURCE_OPTION [VIEWER_OPTION]
fetch() {
  local source first second late i
  rm -f ./*.bin.out
  start source source --input in.bin --listen 127.0.0.1:0 --upload 24M "$1"
  source=$pid
  port=$(port_of source) || fail "the source did not start"
  start first join --source "127.0.0.1:$port" --upload 24M --output first.bin.out "${@:2}"
  first=$pid
  start second join --source "127.0.0.1:$port" --upload 24M --output second.bin.out "${@:2}"
  second=$pid
  for ((i = 0; i < 400; i++)); do # well past what 16 segments are
    [ "$(stat -c %s first.bin.out 2>/dev/null || echo 0)" -ge 2500000 ] && break
    sleep 0.02
  done
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
exit "$bad"
