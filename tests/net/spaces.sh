#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that run real peers, each in a network namespace of its own; to be sourced. It
# provides the namespaces, the network between them (relay.c), the source and the joining peers.
# shellcheck disable=SC2034 # scripts use what it sets

# enter_spaces WEFT RELAY...: runs the script again as root of its own namespaces, with $weft and
# $relay; if that is impossible, says so and passes.
enter_spaces() {
  if [ "${WEFT_IN_NAMESPACE:-}" = yes ]; then
    weft=$(readlink -f -- "$1")
    relay=$(readlink -f -- "$2")
    return
  fi
  if ! unshare -Urm true 2>/dev/null || [ ! -e /dev/net/tun ]; then
    printf 'skipped: needs user namespaces (unshare -Urm) and /dev/net/tun\n'
    exit 0
  fi
  WEFT_IN_NAMESPACE=yes exec unshare -Urm --propagation private "$0" "$@"
}

# enter_alone NAME WEFT...: runs the script again as root of its own network and mounts, in an empty
# folder, with $weft and the loopback up; if that is impossible, says so and passes.
enter_alone() {
  if [ "${WEFT_IN_NAMESPACE:-}" != yes ]; then
    if ! unshare -Urnm ip link set lo up 2>/dev/null || ! unshare -Urnm mount -t tmpfs none /mnt 2>/dev/null; then
      printf 'skipped: needs user namespaces (unshare -Urnm), ip and mount\n'
      exit 0
    fi
    shift
    WEFT_IN_NAMESPACE=yes exec unshare -Urnm --propagation private "$0" "$@"
  fi
  weft=$(readlink -f -- "$2")
  work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/$1.XXXXXX")
  cd -- "$work" && ip link set lo up || exit 1
}

# enter_work NAME: makes an empty folder for this run, which holds the namespaces' names.
enter_work() {
  work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/$1.XXXXXX")
  mount -t tmpfs none "$work" || exit 1
  cd -- "$work" || exit 1
}

in_space() { # I COMMAND...: runs it in namespace I
  local space=$1
  shift
  exec nsenter --net="$work/ns$space" -- "$@"
}

# start_relay PEERS SEED ARGUMENT...: starts the network for a source and that many peers; sets
# $relay_pid
start_relay() {
  local count=$(($1 + 1)) seed=$2 i
  shift 2
  : >relay.log # now, or the last relay's output would be taken for this one's
  "$relay" "$work" "$count" "$seed" "$@" >relay.log &
  relay_pid=$!
  for ((i = 0; i < 200; i++)); do
    grep -q ready relay.log && return
    sleep 0.05
  done
  exit 1
}

wait_for_source() { # until it listens; its log is source.log
  local i
  for ((i = 0; i < 100; i++)); do
    grep -q '^info source' source.log 2>/dev/null && break
    sleep 0.05
  done
}

# start_source RATE OPTION...: starts a live source in namespace 0, of what is written to descriptor
# 8, its upload below four times the stream; sets $source_pid, and $key to its key
start_source() {
  local rate=$1
  shift
  mkfifo pipe
  exec 8<>pipe
  (in_space 0 "$weft" peer source --input - --listen 10.77.0.1:7000 --rate "$rate" \
    --upload $((rate * 39 / 10)) "$@" <pipe 8>&- 2>source.log) &
  source_pid=$!
  wait_for_source
  key=$(sed -n 's/.* key=\([0-9a-f]*\).*/\1/p' source.log | head -n 1)
}

# start_join SPACE NAME PROGRAM OPTION...: starts a peer of that source, its log in NAME.log; sets
# $join_pid
start_join() {
  local space=$1 name=$2 program=$3
  shift 3
  (in_space "$space" "$program" peer join --source 10.77.0.1:7000 --source-key "$key" --startup 1000 --linger 1 \
    "$@" 8>&- 2>"$name.log") &
  join_pid=$!
}
