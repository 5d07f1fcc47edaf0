#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nodes of a live stream play it where only a tracker can be called: the source and six viewers are
# each behind a NAT, and connect by calling each other at the same time. A viewer that can be called
# lets in one behind a symmetric NAT.
#
#   nat_test.sh WEFT RELAY
#
# Each is in a network namespace of its own (relay.c, nat.c): 20 ms +- 5 ms each way, 2 % loss. All
# must play without a gap, byte for byte. Without user namespaces or TUN, it says so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_spaces "$@"

nats=-nnnnnnn-s # the tracker, the source, viewers 2 to 9
last=$((${#nats} - 1))
rate=1500000 seconds=12
seed=${WEFT_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
printf 'seed: WEFT_TEST_SEED=%s\n' "$seed"

enter_work nat
started=() bad=0
trap 'kill -KILL "${started[@]}" "$relay_pid" 2>/dev/null; wait 2>/dev/null' EXIT
fail() {
  printf 'FAIL: %s (WEFT_TEST_SEED=%s)\n' "$1" "$seed" >&2
  bad=1
}

head -c $((rate * seconds / 8)) /dev/urandom >in
start_relay "$last" "$seed" 20000 20000 5000 0 "$nats"
(in_space 0 "$weft" peer tracker --listen 10.77.0.1:7000 2>tracker.log) &
started+=($!)
mkfifo pipe
exec 8<>pipe
(in_space 1 "$weft" peer source --input - --listen :7000 --tracker 10.77.0.1:7000 --rate "$rate" --lag 3000 \
  --upload $((rate * 4)) <pipe 8>&- 2>source.log) &
source_pid=$!
started+=("$source_pid")
viewers=()
for ((i = 2; i <= last; i++)); do
  (in_space "$i" "$weft" peer join --source 10.77.0.1:7000 --startup 1000 --linger 1 --output "$i.out" \
    --upload $((rate * 3)) 8>&- 2>"$i.log") &
  viewers[i]=$!
  started+=("${viewers[i]}")
done
for ((t = 0; t < 200; t++)); do # until all have the stream
  found=$(cat [0-9]*.log | grep -c '^info stream')
  [ "$found" -eq $((last - 1)) ] && break
  sleep 0.05
done
[ "$found" -eq $((last - 1)) ] || fail "$found of $((last - 1)) viewers found the stream within 10 s"
cat in >&8
exec 8>&-

for ((i = 2; i <= last; i++)); do
  wait "${viewers[i]}"
  code=$?
  [ "$code" -eq 0 ] || fail "viewer $i (${nats:i:1}): exit $code: $(tail -n 1 "$i.log")"
  line=$(grep '^info summary' "$i.log" | tail -n 1)
  due=$(sed -n 's/.* due=\([0-9]*\).*/\1/p' <<<"$line") in_time=$(sed -n 's/.* in_time=\([0-9]*\).*/\1/p' <<<"$line")
  printf 'viewer %s (%s): in time %s of %s\n' "$i" "${nats:i:1}" "${in_time:-none}" "${due:-none}"
  if [ "${due:-0}" -le 10 ] || [ "$in_time" -ne "$due" ]; then
    fail "viewer $i: ${in_time:-none} of ${due:-no} segments came in time"
  fi
  tail -c "$(stat -c %s "$i.out")" in | cmp -s - "$i.out" || fail "viewer $i: its bytes differ"
done
wait "$source_pid" || fail "the source: $(tail -n 1 source.log)"
kill -TERM "$relay_pid"
wait "$relay_pid"
cat relay.log
[ "$bad" -eq 0 ] || tail -n 5 ./*.log >&2
exit "$bad"
