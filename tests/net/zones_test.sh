#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Peers dial each other at link-local addresses, between two networks, each with another link where
# those addresses do not exist. Without user namespaces, it says so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_alone zones "$@"
unshare -n sleep 600 &
there_pid=$!
trap 'kill "$there_pid" 2>/dev/null' EXIT
there() { nsenter --net="/proc/$there_pid/ns/net" -- "$@"; }
for ((i = 0; i < 100; i++)); do
  [ "$(readlink "/proc/$there_pid/ns/net")" != "$(readlink /proc/self/ns/net)" ] && break
  sleep 0.05
done
ip link add beside type veth peer name beyond && ip link set beside up && ip link set beyond up &&
  ip link add here type veth peer name there && ip link set there netns "$there_pid" &&
  ip link set here up && ip addr add fe80::a/64 dev here nodad &&
  there ip link add beside type veth peer name beyond && there ip link set beside up && there ip link set beyond up &&
  there ip link set there up && there ip addr add fe80::b/64 dev there nodad || exit 1

head -c 300000 /dev/urandom >in.bin
bad=0
index=$(there cat /sys/class/net/there/ifindex 2>/dev/null || there ip -o link show there | cut -d: -f1)
for listen in '[fe80::a%here]' '[::]'; do
  for zone in there "$index"; do
    "$weft" peer source --input in.bin --listen "$listen:7000" --linger 1 --log-level debug 2>source.log &
    source_pid=$!
    there timeout 60 "$weft" peer join --source "[fe80::a%$zone]:7000" --output out.bin --timeout 20 2>join.log
    code=$?
    kill -TERM "$source_pid" 2>/dev/null
    wait "$source_pid"
    if [ "$code" -ne 0 ] || ! cmp in.bin out.bin || ! grep -q 'fe80::b%here' source.log; then
      printf 'FAIL: at %s, by %s: join exits %s\n' "$listen" "$zone" "$code" >&2
      cat -- source.log join.log >&2
      bad=1
    fi
    rm -f out.bin
  done
done
there timeout 30 "$weft" peer join --source '[fe80::a%beside]:7000' --output out.bin --timeout 1 2>join.log
code=$?
[ "$code" -eq 3 ] || {
  printf 'FAIL: at the interface beside: join exits %s\n' "$code" >&2
  bad=1
}
exit "$bad"
