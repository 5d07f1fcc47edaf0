#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rate of `weft store encode` compared with cp and fsync of the same bytes plus as many as the
# parity has: a file in the page cache, two cores, interleaved.
#
#   bench/store_encode.sh WEFT [-s SIZE] [-k K] [-m M] [-n ROUNDS] [-d FOLDER] [-j FILE]
#
# SIZE: as for truncate (4G); FOLDER: for the file and the shards; FILE: for the result as JSON.
set -euo pipefail

if [ $# -lt 1 ] || ! [ -x "$1" ]; then
  sed -n '3,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
weft=$(realpath -- "$1")
shift
size=4G k=10 m=4 rounds=9 folder=${TMPDIR:-/tmp} json=
while getopts s:k:m:n:d:j: option; do
  case $option in
    s) size=$OPTARG ;;
    k) k=$OPTARG ;;
    m) m=$OPTARG ;;
    n) rounds=$OPTARG ;;
    d) folder=$OPTARG ;;
    j) json=$(realpath -- "$OPTARG") ;;
    *) exit 2 ;;
  esac
done
work=$(mktemp -d -p "$folder")
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"

truncate -s "$size" sized
bytes=$(stat -c %s sized)
rm sized
parity=$((bytes * m / k))
openssl enc -aes-128-ctr -K "$(printf %032d 1)" -iv "$(printf %032d 0)" -nosalt -in /dev/zero 2>/dev/null | head -c "$bytes" >in ||
  [ "$(stat -c %s in)" = "$bytes" ]

copy() {
  cp in copied && head -c "$parity" in >extra && sync copied extra
}
encode() { "$weft" store encode -k "$k" -m "$m" --threads 2 in --output-dir shards >/dev/null 2>&1; }
# timed CALL: prints its seconds; starts with clean disk caches
timed() {
  rm -rf copied extra shards
  cat in >/dev/null # load it into the page cache
  sync
  local begin=$EPOCHREALTIME
  "$1" || {
    printf '%s failed with exit code %d in %s\n' "$1" $? "$PWD" >&2
    exit 1
  }
  local end=$EPOCHREALTIME
  awk -v a="$begin" -v b="$end" 'BEGIN { printf "%.6f", b - a }'
}

[ "$(nproc)" -le 2 ] || taskset -cp 0,1 $$ >/dev/null
copies=() encodes=() ratios=() loads=()
for ((i = 0; i < rounds; i++)); do
  loads+=("$(cut -d ' ' -f 1 /proc/loadavg)") # running or waiting programs over the last minute, including ours
  if ((i % 2)); then
    b=$(timed encode)
    a=$(timed copy)
  else
    a=$(timed copy)
    b=$(timed encode)
  fi
  copies+=("$a") encodes+=("$b")
  ratios+=("$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.4f", a / b }')")
  printf 'round %d: cp + fsync %s s, encode %s s: %s times its rate\n' $((i + 1)) "$a" "$b" "${ratios[i]}"
done

# spread VALUE...: prints median, smallest and largest
spread() { printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { printf "%s %s %s", v[int((NR + 1) / 2)], v[1], v[NR] }'; }
read -r middle low high <<<"$(spread "${ratios[@]}")"
printf '%s bytes, %d + %d: encode reaches %s (%s..%s) of the rate of cp + fsync, data and parity\n' \
  "$bytes" "$k" "$m" "$middle" "$low" "$high"
if [ -n "$json" ]; then
  list() { local IFS=,; printf '[%s]' "$*"; }
  printf '{"bytes": %d, "k": %d, "m": %d, "threads": 2, "cpu": "%s", "date": "%s",\n "copy_s": %s,\n "encode_s": %s,\n' \
    "$bytes" "$k" "$m" "$(sed -n 's/^model name[^:]*: //p;T;q' /proc/cpuinfo)" "$(date -u +%FT%TZ)" \
    "$(list "${copies[@]}")" "$(list "${encodes[@]}")" >"$json"
  printf ' "load": %s, "cpus": %d,\n' "$(list "${loads[@]}")" "$(getconf _NPROCESSORS_ONLN)" >>"$json"
  printf ' "ratio": {"median": %s, "min": %s, "max": %s}}\n' "$middle" "$low" "$high" >>"$json"
fi
