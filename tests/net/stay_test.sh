#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A peer that has all of a file and is told to stay gives it to peers that come when all others have
# left: a source, and one that fetched it and is known only to a tracker.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 3000000 /dev/urandom >in.bin

# alone PORT: waits until the peer with --metrics there has no neighbour
alone() {
  local i
  for ((i = 0; i < 400; i++)); do
    http_get 127.0.0.1 "$1" /status status.json && grep -q '"neighbours": 0,' status.json && return 0
    sleep 0.05
  done
  fail "the peer at $1 keeps its neighbours"
}

# fetched NAME OPTION...: a peer that comes now gets all of it
fetched() {
  local name=$1
  shift
  "$weft" peer join --output "$name.out" --timeout 5 "$@" 2>"$name.log" || fail "$name ends with $?"
  cmp in.bin "$name.out" || fail "$name has other bytes"
}

# --- A source that serves one after another
start source source --input in.bin --listen 127.0.0.1:0 --metrics 127.0.0.1:0 --linger 0 --stay forever
source=$pid
for name in first second; do
  fetched "$name" --source "127.0.0.1:$(port_of source)"
  alone "$(port_of source metrics)"
  sleep 0.5 # it looks ten times a second
done
kill -TERM "$source"
wait "$source" || fail "a source that stayed until SIGTERM ends with $?"

# --- One that fetched it, when the source has left
start tracker tracker --listen 127.0.0.1:0
tracker=127.0.0.1:$(port_of tracker)
start source source --input in.bin --listen 127.0.0.1:0 --tracker "$tracker" --linger 0 --upload 40M
source=$pid
until_said source 'info source'
start seed join --source "$tracker" --output seed.out --metrics 127.0.0.1:0 --timeout 2 --linger 0 --stay 1h
seed=$pid
until_said seed 'info ended'
cmp in.bin seed.out || fail 'who stays has other bytes when it says that it has all'
wait "$source" || fail "the source of one who stays ends with $?"
seed_metrics=$(port_of seed metrics)
alone "$seed_metrics"
sleep 2.5 # --timeout is over
http_get 127.0.0.1 "$seed_metrics" /healthz health.txt
grep -qx ok health.txt || fail 'who stays with all of it is not healthy'
fetched late --source "$tracker"
fetched later --source "127.0.0.1:$(port_of seed)"
kill -0 "$seed" || fail 'who was told to stay went'
kill -TERM "$seed"
wait "$seed" || fail "who stayed until SIGTERM ends with $?"

# --- Peers that have everything and stay take no other's place
start source source --input in.bin --listen 127.0.0.1:0 --linger 0 --stay forever --neighbours 1 # it takes two
source=$pid
for i in 2 3; do
  start "stays$i" join --source "127.0.0.1:$(port_of source)" --listen "127.0.0.$i:0" --output "stays$i.out" --stay forever
  seeds[i]=$pid
  until_said "stays$i" 'info ended'
done
for i in 4 5; do
  fetched "comes$i" --source "127.0.0.1:$(port_of source)" --listen "127.0.0.$i:0"
done
kill -TERM "$source" "${seeds[@]}"
wait "$source" || fail "a source of those who stay ends with $?"

# --- A peer that left without all of it may come again
start source source --input in.bin --listen 127.0.0.1:0 --linger 10 --upload 8M
source=$pid
start early join --source "127.0.0.1:$(port_of source)" --output early.out
for ((i = 0; i < 400; i++)); do
  [ "$(stat -c %s early.out 2>/dev/null || echo 0)" -gt 0 ] && break
  sleep 0.02
done
kill -TERM "$pid"
wait "$pid"
sleep 0.5 # it looks ten times a second
fetched again --source "127.0.0.1:$(port_of source)"
wait "$source" || fail "a source to which somebody came again ends with $?"

# --- For a limited time
start source source --input in.bin --listen 127.0.0.1:0 --linger 0 --stay 2s
source=$pid
fetched brief --source "127.0.0.1:$(port_of source)"
begun=$(date +%s%N)
wait "$source" || fail "a source that stayed for a time ends with $?"
[ $(($(date +%s%N) - begun)) -ge 1000000000 ] || fail 'a source did not stay for its time'
exit "$bad"
