#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches a file from one peer over a path of 20 ms each way that loses packets: losses must not
# slow it down much, as coded packets need no retransmission, nor must reordering.
#
#   lossy_test.sh WEFT RELAY [--megabytes N] [--losses "PERCENT..."] [--jitters "MS..."] [--times N]
#
# Prints the median of the fetches and each of them in milliseconds, including the handshake, for
# which a few need a second or two; with a jitter of J each packet takes 20 ms - J to 20 ms + J.
# With losses, the median may be twice that without, and two seconds. Without user namespaces or
# TUN, it says so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_spaces "$@"
shift 2
megabytes=4 losses='0 5' jitters='0 5' times=3
while [ $# -gt 0 ]; do
  case $1 in
    --megabytes) megabytes=$2 ;;
    --losses) losses=$2 ;;
    --jitters) jitters=$2 ;;
    --times) times=$2 ;;
    *)
      printf 'lossy_test.sh: what is %s?\n' "$1" >&2
      exit 2
      ;;
  esac
  shift 2
done
seed=${WEFT_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
printf 'seed: WEFT_TEST_SEED=%s\n' "$seed"

enter_work lossy
source_pid='' relay_pid='' bad=0
trap 'kill -KILL $source_pid $relay_pid 2>/dev/null; wait 2>/dev/null' EXIT
head -c "$megabytes"M /dev/urandom >in

# fetch LOSS JITTER SEED: sets $took, milliseconds
fetch() {
  local begun code
  start_relay 1 "$3" $(($1 * 10000)) 20000 $(($2 * 1000)) 0
  (in_space 0 "$weft" peer source --input in --listen 10.77.0.1:7000 --window 256 2>source.log) &
  source_pid=$!
  wait_for_source
  begun=$(date +%s%3N)
  (in_space 1 timeout 120 "$weft" peer join --source 10.77.0.1:7000 --window 256 --linger 0 --output out 2>join.log)
  code=$?
  took=$(($(date +%s%3N) - begun))
  if [ "$code" -ne 0 ] || ! cmp -s in out; then
    printf 'FAIL: exit %s: %s (WEFT_TEST_SEED=%s)\n' "$code" "$(tail -n 1 join.log)" "$seed" >&2
    bad=1
  fi
  kill -TERM "$source_pid" "$relay_pid" 2>/dev/null # the source may have ended by itself
  wait "$source_pid" "$relay_pid"
  source_pid='' relay_pid=''
  umount ns0 ns1 2>/dev/null
  rm -f ns0 ns1 out source.log
}

for jitter in $jitters; do
  clean=
  for loss in $losses; do
    all=()
    for ((time = 0; time < times; time++)); do
      fetch "$loss" "$jitter" $((seed + time))
      all+=("$took")
    done
    median=$(printf '%s\n' "${all[@]}" | sort -n | sed -n "$((times / 2 + 1))p")
    printf '%s MiB, jitter %s ms, loss %s %%: %s s (%s)\n' "$megabytes" "$jitter" "$loss" \
      "$(printf '%d.%03d' $((median / 1000)) $((median % 1000)))" "${all[*]}"
    clean=${clean:-$median}
    if [ "$median" -gt $((clean * 2 + 2000)) ]; then
      printf 'FAIL: %s ms with losses, %s ms without (WEFT_TEST_SEED=%s)\n' "$median" "$clean" "$seed" >&2
      bad=1
    fi
  done
done
exit "$bad"
