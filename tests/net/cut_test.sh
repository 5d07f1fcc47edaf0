#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft peer join` to a pipe that is full when a signal stops it: what it holds is written if the
# reader takes it within --linger; else it says how much was not, and exits with 3.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 3000000 /dev/urandom >in.bin # 46 segments, far more than a pipe takes
start source source --input in.bin --listen 127.0.0.1:0 --stay forever
port=$(port_of source) || fail 'the source did not start'

# full NAME OPTION...: starts a viewer, whose pipe (open as 8) is full and which has the whole file
full() {
  local name=$1 metrics i
  shift
  mkfifo "$name.pipe"
  exec 8<>"$name.pipe"
  start "$name" join --source "127.0.0.1:$port" --output "$name.pipe" --metrics 127.0.0.1:0 "$@"
  metrics=$(port_of "$name" metrics) || fail "$name did not start"
  for ((i = 0; i < 400; i++)); do
    http_get 127.0.0.1 "$metrics" /metrics metrics.txt
    grep -q '^weft_peer_segments_total 46' metrics.txt && return
    sleep 0.05
  done
  fail "$name did not get the file"
}

# cut NAME: expects exit 3, and that what it says was not written follows what was
cut() {
  local name=$1 code lost bytes
  wait "$pid"
  code=$?
  [ "$code" -eq 3 ] || fail "$name: exit $code, not 3"
  grep -q "^weft peer: $name.pipe: its reader did not take everything" "$name.log" || fail "$name: no error"
  lost=$(sed -n 's/^warning output-cut bytes=//p' "$name.log")
  bytes=$(sed -n 's/^info summary.* bytes=\([0-9]*\).*/\1/p' "$name.log")
  cat <&8 >"$name.out" &
  reader=$!
  until_grown "$name.out" "$bytes"
  kill "$reader"
  exec 8>&-
  [ $((lost + bytes)) -eq 3000000 ] || fail "$name: $bytes bytes were written and $lost not"
  cmp -n "$bytes" in.bin "$name.out" || fail "$name: other bytes"
  [ "$(stat -c %s "$name.out")" -eq "$bytes" ] || fail "$name: bytes=$bytes is not what was written"
}

full read --linger 60
kill -TERM "$pid"
until_said read 'info stopping'
sleep 0.5
exec 5<read.pipe 8>&-
cat <&5 >read.out
exec 5<&-
wait "$pid" || fail "a viewer whose pipe was read after SIGTERM: exit $?"
cmp in.bin read.out || fail 'a viewer whose pipe was read after SIGTERM lost bytes'

full stalled --linger 1
began=$SECONDS
kill -TERM "$pid"
cut stalled
[ $((SECONDS - began)) -le 15 ] || fail "--linger 1 took $((SECONDS - began)) s"

full interrupted --linger 0
kill -HUP "$pid" # SIGINT is ignored in the background
cut interrupted

full hurried --linger 600
began=$SECONDS
kill -TERM "$pid"
until_said hurried 'info stopping'
sleep 0.3
kill -TERM "$pid"
cut hurried
[ $((SECONDS - began)) -le 30 ] || fail "a second SIGTERM took $((SECONDS - began)) s"

full gone --linger 60
kill -TERM "$pid"
until_said gone 'info stopping'
exec 8>&-
wait "$pid"
code=$?
[ "$code" -eq 3 ] || fail "a reader that goes after SIGTERM: exit $code, not 3"
grep -q 'gone.pipe: Broken pipe' gone.log || fail 'a reader that goes after SIGTERM is not told of'
exit "$bad"
