#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No process of a swarm with churn (swarm.sh) grows, however long it runs. By default 16 peers, of
# which 30 % are replaced every 10 s, for five minutes; --seconds 3600 is the hour.
#
#   soak.sh WEFT RELAY [--seconds S] [--peers N] [--churn PERCENT]
#
# Everything that swarm.sh checks holds as well: continuity, byte for byte, the source's upload,
# exit codes. A process that ran for a minute must end with at most 1.1 times the memory that it had
# after half a minute, and 1 MiB.
set -uo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
weft=$1 relay=$2
shift 2
seconds=300 peers=16 churn=30
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2 ;;
    --peers) peers=$2 ;;
    --churn) churn=$2 ;;
    *)
      printf 'soak.sh: what is %s?\n' "$1" >&2
      exit 2
      ;;
  esac
  shift 2
done

work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/soak.XXXXXX")
# A session of its own, by which its processes are recognised.
setsid "$here/swarm.sh" "$weft" "$relay" --peers "$peers" --seconds "$seconds" --churn "$churn" &
swarm=$!
# shellcheck disable=SC2317 # called by the trap
finish() {
  kill -TERM -- "-$swarm" 2>/dev/null
  wait 2>/dev/null
  rm -rf -- "$work"
}
trap finish EXIT

: >"$work/samples"
while kill -0 "$swarm" 2>/dev/null; do
  sleep 5
  # process, age in seconds, memory in KiB, its position in "weft peer WORD"
  ps -s "$swarm" -o pid=,etimes=,rss=,args= | awk '/ peer (source|join) / { print $1, $2, $3, /peer source/ ? "source" : "join" }' \
    >>"$work/samples"
done
wait "$swarm"
code=$?

if [ ! -s "$work/samples" ]; then
  exit "$code" # it was skipped or failed, and said so
fi
awk '
  $2 >= 30 && !($1 in first) { first[$1] = $3 }
  { last[$1] = $3; age[$1] = $2; what[$1] = $4 }
  END {
    for (p in first) {
      if (age[p] < 60) continue
      judged++
      growth = last[p] - first[p]
      if (judged == 1 || growth > most) most = growth
      if (last[p] > 1.1 * first[p] + 1024) {
        printf "FAIL: a %s grew from %d KiB after 30 s to %d KiB after %d s\n", what[p], first[p], last[p], age[p]
        bad = 1
      }
    }
    for (p in last) all++
    printf "soak: %d processes, %d of them lived for a minute, the most that one grew by after 30 s: %d KiB\n", all, judged, most
    exit bad
  }' "$work/samples" || code=1
exit "$code"
