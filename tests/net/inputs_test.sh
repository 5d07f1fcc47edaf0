#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Live inputs that are less even than a file are played whole: a FIFO without a writer yet, one that
# slows down until a segment takes longer than the lag, one that brings more within the lag than 64
# segments hold, and one whose writer is killed.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

# pace BYTES TIMES: writes that many bytes twenty times a second
pace() {
  local i
  for ((i = 0; i < $2; i++)); do
    head -c "$1" /dev/urandom
    sleep 0.05
  done
}

# watched NAME OPTION...: a viewer of NAME.fifo from its beginning gets every byte that went in
watched() {
  local name=$1 port viewer writer
  shift
  mkfifo "$name.fifo"
  start "$name" source --input "$name.fifo" --listen 127.0.0.1:0 "$@"
  port=$(port_of "$name") || fail "a source waits for whoever writes its FIFO"
  start "$name-viewer" join --source "127.0.0.1:$port" --output "$name.out"
  viewer=$pid
  until_said "$name-viewer" 'info stream' # so that it gets all of it, however late it began
  "$name" | tee "$name.in" >"$name.fifo" &
  writer=$!
  wait "$writer"
  wait "$viewer" || fail "$name: who watches ends with $?"
  cmp "$name.in" "$name.out" || fail "$name: other bytes than went in"
}

# shellcheck disable=SC2317 # called by their names
slow() {
  pace 10000 20
  pace 120 120 # 8 KiB take 3.4 s
  pace 10000 20
}
# shellcheck disable=SC2317
fast() { pace 250000 80; } # over 40 Mbit/s: 3 s of it are 300 segments

watched slow --segment-blocks 8 --lag 2s
watched fast
grep -q '^info summary .*skipped=0 passed_over=0' fast-viewer.log || fail 'a fast stream has gaps'

# A FIFO that is held open outlives its writer, and goes on with the next.
mkfifo held.fifo
head -c 700000 /dev/urandom >held.in
start held source --input held.fifo --rate 4M --listen 127.0.0.1:0
port=$(port_of held) || fail 'a source waits for whoever holds its FIFO'
start held-viewer join --source "127.0.0.1:$port" --output held.out --timeout 3
viewer=$pid
until_said held-viewer 'info stream'
exec 3<>held.fifo
(
  head -c 300000 held.in
  exec sleep 60
) >held.fifo &
writer=$!
until_grown held.out 200000
kill -KILL "$writer"
sleep 4 # more than --timeout
tail -c 400000 held.in >held.fifo
exec 3>&-
wait "$viewer" || fail "who watches what a second writer went on with ends with $?"
cmp held.in held.out || fail 'between two writers bytes were lost'

# A source that waits for a FIFO's writer can be stopped.
mkfifo none.fifo
start none source --input none.fifo --listen 127.0.0.1:0
port_of none >/dev/null || fail 'a source without a writer does not begin'
kill -TERM "$pid"
wait "$pid" || fail "a source without a writer ends with $?"
# A window that holds less than the lag is reported.
start told source --input - --window 64 --listen 127.0.0.1:0 < <(pace 1000000 160)
for ((i = 0; i < 200; i++)); do
  grep -q '^warning window-short' told.log && break
  sleep 0.05
done
grep -q '^warning window-short' told.log || fail 'a window that is too short is not told of'
exit "$bad"
