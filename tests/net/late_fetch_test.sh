#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who comes to a fetch when the first has a part of it already: he has all, of a file that is longer than 64 segments,
# too; where the source may hold fewer he ends with 1, and the first has his.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 6000000 /dev/urandom >in.bin # 92 segments, at 24 Mbit/s 2 s for one, and 4 for two

# fetch EXPECTED OPTION...: of the late one
fetch() {
  local expected=$1 first late source code i
  shift
  rm -f first.bin late.bin
  start source source --input in.bin --listen 127.0.0.1:0 --upload 24M "$@"
  source=$pid
  port=$(port_of source) || fail "the source did not start"
  start first join --source "127.0.0.1:$port" --output first.bin
  first=$pid
  for ((i = 0; i < 400; i++)); do # well past what 16 segments are
    [ "$(stat -c %s first.bin 2>/dev/null || echo 0)" -ge 2000000 ] && break
    sleep 0.02
  done
  start late join --source "127.0.0.1:$port" --output late.bin --timeout 3
  late=$pid
  wait "$late"
  code=$?
  [ "$code" -eq "$expected" ] || fail "$*: the late one ends with $code"
  wait "$first" || fail "$*: the first ends with $?"
  wait "$source" || fail "$*: the source ends with $?"
  cmp in.bin first.bin || fail "$*: the first has other bytes"
}

fetch 0
cmp in.bin late.bin || fail "the late one has other bytes"
fetch 1 --window 16
exit "$bad"
