#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Peers whose process stands still for some seconds (SIGSTOP, as in a paused virtual machine) go on
# where they were, and so do the others.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 4500000 /dev/urandom >in.bin

# --- In a fetch, one whose neighbours do not include the source (it takes twice the --neighbours). It
# is away for longer than its --timeout, and until all others are complete, which wait for it.
start source source --input in.bin --upload 3M --linger 60 --neighbours 1 --listen 127.0.0.1:0
others=("$pid")
at=127.0.0.1:$(port_of source)
for name in first second; do
  start "$name" join --source "$at" --output "$name.out" --upload 3M --linger 60
  others+=("$pid")
  until_grown "$name.out" 1
done
start far join --source "127.0.0.1:$(port_of first)" --output far.out --timeout 5
far=$pid
until_grown far.out 100000
kill -STOP "$far"
sleep 8
for name in first second; do
  until_said "$name" 'info ended'
done
sleep 1 # they look ten times a second
kill -CONT "$far"
wait "$far" || fail "who was stopped for longer than --timeout ends with $?"
cmp in.bin far.out || fail 'who was stopped has other bytes'
for pid in "${others[@]}"; do
  wait "$pid" || fail "one of the peers that were not stopped ends with $?"
done

# --- Before there is a stream: no answer came meanwhile, as it did not ask.
start tracker tracker --listen 127.0.0.1:0
start early join --source "127.0.0.1:$(port_of tracker)" --output early.out --timeout 3
early=$pid
port_of early >/dev/null
kill -STOP "$early"
start late source --input in.bin --listen 127.0.0.1:0 --tracker "127.0.0.1:$(port_of tracker)"
sleep 4
kill -CONT "$early"
wait "$early" || fail "who was stopped before there was a stream ends with $?"
cmp in.bin early.out || fail 'who was stopped before there was a stream has other bytes'
exit "$bad"
