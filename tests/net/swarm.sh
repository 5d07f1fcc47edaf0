#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every peer plays a live 720p MPEG-TS from one source without a gap, byte for byte, each in a
# network namespace of its own, over a network that delays, reorders, loses and duplicates
# (relay.c).
#
#   swarm.sh WEFT RELAY [--peers N] [--seconds S] [--churn PERCENT] [--polluters PERCENT --polluter WEFT]
#            [--checksums on] [--late SECONDS] [--pause SECONDS] [--scheme push|pull] [--keep FOLDER]
#
# churn: this share of the peers is killed every 10 s, and others come in their place. checksums:
# the source reveals them, as it always does against polluters. late: the stream begins this long
# after all peers came. pause: it stops for this long half-way. keep: copies the logs there. Without
# user namespaces or TUN, it says so and passes; without ffmpeg, the stream is random bytes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_spaces "$@"
shift 2
peers=32 seconds=20 churn=0 polluters=0 polluter=$weft late=0 pause=0 scheme=push keep=
source_options=()
rate=2500000
while [ $# -gt 0 ]; do
  case $1 in
    --peers) peers=$2 ;;
    --seconds) seconds=$2 ;;
    --churn) churn=$2 ;;
    --polluters) polluters=$2 ;;
    --polluter) polluter=$(readlink -f -- "$2") ;;
    --checksums) [ "$2" = off ] || source_options=(--checksums on) ;;
    --late) late=$2 ;;
    --pause) pause=$2 ;;
    --scheme) scheme=$2 ;;
    --keep) keep=$(readlink -f -- "$2") ;;
    *)
      printf 'swarm.sh: what is %s?\n' "$1" >&2
      exit 2
      ;;
  esac
  shift 2
done
[ "$polluters" -eq 0 ] || source_options=(--checksums on)
if [ "$churn" -gt 0 ] || [ "$polluters" -gt 0 ]; then lag=3000; else lag=2000; fi # start-up takes the lag, too
source_options+=(--lag "$lag" --scheme "$scheme")
seed=${WEFT_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
printf 'seed: WEFT_TEST_SEED=%s\n' "$seed"
RANDOM=$seed

enter_work swarm
declare -A running=()
bad=0

# shellcheck disable=SC2317 # called by the trap
finish() {
  [ -z "$source_pid" ] || kill -KILL "${running[@]}" "$source_pid" 2>/dev/null
  [ -z "$relay_pid" ] || kill -KILL "$relay_pid" 2>/dev/null
  [ -z "$watch_pid" ] || kill -KILL "$watch_pid" 2>/dev/null
  wait 2>/dev/null
}
source_pid='' relay_pid='' watch_pid=''
trap finish EXIT

fail() {
  printf 'FAIL: %s (WEFT_TEST_SEED=%s)\n' "$1" "$seed" >&2
  bad=1
}

field() { # NAME LINE: prints the value of NAME=; 0 if there is none
  local pattern=" $1=(-?[0-9]+)"
  if [[ $2 =~ $pattern ]]; then printf '%s\n' "${BASH_REMATCH[1]}"; else printf '0\n'; fi
}

# --- The stream
if command -v ffmpeg >/dev/null; then
  ffmpeg -v error -f lavfi -i testsrc2=size=1280x720:rate=25 -t "$seconds" -c:v libx264 -preset ultrafast \
    -b:v 2M -maxrate 2M -bufsize 1M -muxrate "$rate" -f mpegts in.ts || exit 1
else
  printf 'no ffmpeg: random bytes instead of a 720p H.264 MPEG-TS\n'
  head -c $((rate * seconds / 8)) /dev/urandom >in.ts
fi
total=$(stat -c %s in.ts)

# --- The network: 2 % loss, 20 ms +- 5 ms each way, 0.5 % duplicates
start_relay "$peers" "$seed" 20000 20000 5000 5000

# --- The source, paced by --rate
start_source "$rate" "${source_options[@]}"

played() { # NAME: prints the bytes of the segments that its log says were played
  local segment
  sed -n 's/^debug engine kind=3 segment=//p' "$1.log" | while read -r segment; do
    tail -c +$((segment * 65536 + 1)) in.ts | head -c 65536 || true # tail fails if head stops early, which is no error
  done
}

bad_peers=$((peers * polluters / 100))
started=0
start_peer() { # SPACE NAME
  local program=$weft
  [ "$started" -ge "$bad_peers" ] || program=$polluter
  started=$((started + 1))
  start_join "$1" "$2" "$program" --output "$2.out" --upload $((rate * 3)) --scheme "$scheme" --log-level debug
  running[$2]=$join_pid
}

# Records when each peer has its first neighbour, from which it counts its start-up: lines of NAME
# MILLISECONDS.
watch_arrivals() {
  local -A seen=()
  local log
  while sleep 0.05; do
    while read -r log; do
      [ -n "${seen[$log]:-}" ] || printf '%s %s\n' "${log%.log}" $((${EPOCHREALTIME/[.,]/} / 1000))
      seen[$log]=yes
    done < <(grep -l '^info stream' peer*.log 2>/dev/null)
  done
}
watch_arrivals >found 8>&- &
watch_pid=$!
for ((i = 1; i <= peers; i++)); do start_peer "$i" "peer$i"; done
for ((t = 0; t < 200; t++)); do
  [ "$(wc -l <found)" -eq "$peers" ] && break
  sleep 0.05
done
kill "$watch_pid"
watch_pid=
declare -A found_ms=()
while read -r name ms; do found_ms[$name]=$ms; done <found
sleep "$late"
begun_ms=$((${EPOCHREALTIME/[.,]/} / 1000))
{
  head -c $((total / 2)) in.ts
  sleep "$pause"
  tail -c +$((total / 2 + 1)) in.ts
} >&8 &
cat_pid=$!
exec 8>&-
start=$SECONDS

# --- Churn
killed=0 next=$((peers + 1)) first_memory=0 memory=0
declare -A space_of=()
for ((i = 1; i <= peers; i++)); do space_of[peer$i]=$i; done
while [ "$churn" -gt 0 ] && [ $((SECONDS - start)) -lt $((seconds - 12)) ]; do
  sleep 10
  memory=$(awk '/^VmRSS/ { print $2 }' "/proc/$source_pid/status" 2>/dev/null)
  if [ "$first_memory" -eq 0 ] && [ $((SECONDS - start)) -ge 30 ]; then first_memory=${memory:-0}; fi
  names=("${!running[@]}")
  for ((i = 0; i < peers * churn / 100; i++)); do
    at=$((RANDOM % ${#names[@]}))
    name=${names[$at]}
    [ -n "${running[$name]:-}" ] || continue # killed in this round already
    kill -KILL "${running[$name]}"
    wait "${running[$name]}" 2>/dev/null
    unset "running[$name]"
    rm -f -- "$name.out" "$name.log"
    killed=$((killed + 1))
    start_peer "${space_of[$name]}" "peer$next"
    space_of[peer$next]=${space_of[$name]}
    next=$((next + 1))
  done
done
# After half a minute, the source has all the memory that it will ever need.
if [ "$first_memory" -gt 0 ]; then
  printf 'source: %s KiB after 30 s, %s KiB at the end\n' "$first_memory" "$memory"
  [ "$memory" -le $((first_memory * 11 / 10 + 1024)) ] || fail "the source grew from $first_memory to $memory KiB"
fi

# --- The end
wait "$cat_pid"
least=1 slowest=0 due_all=0 in_all=0 ended=0
honest=0 wrong=0 banned=0
for name in "${!running[@]}"; do
  wait "${running[$name]}"
  code=$?
  unset "running[$name]"
  number=${name#peer}
  [ "$number" -gt "$bad_peers" ] || continue # a polluter: nothing is required of it
  honest=$((honest + 1))
  [ "$code" -eq 0 ] || fail "$name: exit $code: $(tail -n 1 "$name.log")"
  line=$(grep '^info summary' "$name.log" | tail -n 1)
  due=$(field due "$line") in_time=$(field in_time "$line") startup=$(field startup_ms "$line")
  wrong=$((wrong + $(field hash_failures "$line"))) banned=$((banned + $(field banned "$line")))
  bytes=$(stat -c %s "$name.out" 2>/dev/null || echo 0)
  due_all=$((due_all + ${due:-0})) in_all=$((in_all + ${in_time:-0}))
  [ "${startup:-99999}" -le "$slowest" ] || slowest=$startup
  [ "${due:-0}" -gt 0 ] || fail "$name played nothing"
  # The output is the input from some segment on; with gaps, the segments that it says it played.
  if [ "$in_time" -eq "$due" ]; then
    tail -c "$bytes" in.ts | cmp -s - "$name.out" || fail "$name: its bytes differ"
    [ $(((total - bytes) % 65536)) -eq 0 ] || fail "$name: began within a segment"
  else
    played "$name" | cmp -s - "$name.out" || fail "$name: its bytes differ from the segments played"
  fi
  if [ "$churn" -eq 0 ] && [ "$polluters" -eq 0 ]; then
    # Before the first byte there is nothing to play, however long it took the last peer to come.
    waited=$((begun_ms - ${found_ms[$name]:-begun_ms}))
    [ $((startup - waited)) -lt 3000 ] || fail "$name: start-up took $startup ms, of which it waited $waited for the stream"
    [ "$in_time" -eq "$due" ] || fail "$name: $((due - in_time)) of $due segments came too late"
  fi
  ended=$((ended + 1))
done
wait "$source_pid"
source_sent=$(sed -n 's/.*summary.* sent_bytes=\([0-9]*\).*/\1/p' source.log)
kill -TERM "$relay_pid"
wait "$relay_pid"
least=$(awk -v a="$in_all" -v b="$due_all" 'BEGIN { printf "%.4f", b ? a / b : 0 }')
ratio=$(awk -v a="${source_sent:-0}" -v b="$total" 'BEGIN { printf "%.2f", a / b }')
printf 'peers=%s killed=%s ended=%s continuity=%s startup_ms_max=%s source_upload=%sx refetched=%s banned=%s %s\n' "$peers" \
  "$killed" "$ended" "$least" "$slowest" "$ratio" "$wrong" "$banned" "$(tail -n 1 relay.log)"
awk -v r="$ratio" 'BEGIN { exit !(r < 4) }' || fail "the source sent $ratio times the stream"
if [ "$churn" -gt 0 ] || [ "$polluters" -gt 0 ]; then
  awk -v c="$least" 'BEGIN { exit !(c >= 0.99) }' || fail "continuity $least"
fi
# If the relay delivers packets late because the processor was busy, the peers lose data: that says
# nothing about them.
if [ "$bad" -ne 0 ]; then
  line=$(tail -n 1 relay.log)
  carried=$(field carried " $line") tardy=$(field tardy " $line")
  [ $((tardy * 10)) -lt "$carried" ] ||
    printf 'This machine was too slow for %s peers: %s %% of %s packets were more than 5 ms late, up to %s ms.\n' \
      "$peers" $((tardy * 100 / carried)) "$carried" "$(field tardy_ms_max " $line")" >&2
fi
[ -z "$keep" ] || cp -- *.log "$keep"
[ "$bad" -eq 0 ] || tail -qn 2 source.log peer*.log 2>/dev/null | head -n 60 >&2
exit "$bad"
