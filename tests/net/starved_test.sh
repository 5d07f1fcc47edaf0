#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft peer join` that finds the stream and has no memory for it says so, with the exit code for
# lack of memory, and not that there was no stream.
weft=$(readlink -f -- "$1")
starved=$(readlink -f -- "$2")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 1000000 /dev/urandom >in.bin
start source source --input in.bin --listen 127.0.0.1:0
port=$(port_of source) || fail "the source does not start"
weft_peer=("$starved" peer)
expect 4 "the stream at 127.0.0.1:$port could not be started: out of host memory" \
  join --source "127.0.0.1:$port" --output out.bin --timeout 1
grep -q '^warning stream-failed address=127.0.0.1:.* status=' error.txt || fail "no line of the log tells it"
exit "$bad"
