#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A viewer whose link carries a part of a live stream plays a part of it, instead of nothing: some
# segments are whole because others are not sent at all. All other viewers play everything.
#
#   narrow_test.sh WEFT RELAY [--peers N] [--percent P] [--seconds S]
#
# The last peer has the link, of P percent of the stream's rate. Without user namespaces or TUN, it
# says so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_spaces "$@"
shift 2
peers=1 percent=65 seconds=40
while [ $# -gt 0 ]; do
  case $1 in
    --peers) peers=$2 ;;
    --percent) percent=$2 ;;
    --seconds) seconds=$2 ;;
    *)
      printf 'narrow_test.sh: what is %s?\n' "$1" >&2
      exit 2
      ;;
  esac
  shift 2
done
seed=${WEFT_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
printf 'seed: WEFT_TEST_SEED=%s\n' "$seed"

enter_work narrow
source_pid='' relay_pid='' pids=() bad=0
trap 'kill -KILL $source_pid $relay_pid "${pids[@]}" 2>/dev/null; wait 2>/dev/null' EXIT
rate=2000000
head -c $((rate * seconds / 8)) /dev/urandom >in
start_relay "$peers" "$seed" 0 20000 0 0 - "$peers:$((rate * percent / 100))"
start_source "$rate" --lag 3000
for ((i = 1; i <= peers; i++)); do
  start_join "$i" "peer$i" "$weft" --output "peer$i.out" --upload $((rate * 3))
  pids+=("$join_pid")
done
for ((i = 0; i < 200; i++)); do
  [ "$(grep -l '^info stream' peer*.log 2>/dev/null | wc -l)" -eq "$peers" ] && break
  sleep 0.05
done
cat in >&8 &
exec 8>&-
wait "${pids[@]}" "$!"

field() { # NAME I: prints the value of NAME= in the summary of peer I
  sed -n "s/^info summary \(.* \)\{0,1\}$1=\([0-9]*\).*/\2/p" "peer$2.log" | tail -n 1
}
for ((i = 1; i <= peers; i++)); do
  due=$(field due "$i") in_time=$(field in_time "$i")
  printf 'peer %s: %s of %s segments in time\n' "$i" "${in_time:-0}" "${due:-0}"
  least=$((i < peers ? ${due:-0} : ${due:-0} * percent / 500)) # it takes some 15 s to find out
  if [ "${due:-0}" -eq 0 ] || [ "${in_time:-0}" -lt "$least" ]; then
    printf 'FAIL: that is too little (WEFT_TEST_SEED=%s)\n' "$seed" >&2
    tail -n 2 "peer$i.log" >&2
    bad=1
  fi
done
if ! grep -q '^warning forgoing sixteenths=[0-9]* link=narrow$' "peer$peers.log"; then
  printf 'FAIL: peer %s was not told that its link is too narrow (WEFT_TEST_SEED=%s)\n' "$peers" "$seed" >&2
  bad=1
fi
exit "$bad"
