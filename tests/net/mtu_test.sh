#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A network whose packets are shorter than weft's datagrams: the kernel cuts them up, and the stream arrives.
# Without user namespaces it says so and passes.
set -uo pipefail
if [ "${WEFT_IN_NAMESPACE:-}" != yes ]; then
  if ! unshare -Urn true 2>/dev/null || ! unshare -Urn ip link set lo up 2>/dev/null; then
    printf 'skipped: needs user namespaces (unshare -Urn) and ip\n'
    exit 0
  fi
  WEFT_IN_NAMESPACE=yes exec unshare -Urn "$0" "$@"
fi
weft=$(readlink -f -- "$1")
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/mtu.XXXXXX")
cd -- "$work" || exit 1
ip link set lo mtu 1000 up || exit 1
head -c 2000000 /dev/urandom >in.bin
"$weft" peer source --input in.bin --listen 127.0.0.1:7000 --linger 1 2>source.log &
source_pid=$!
timeout 30 "$weft" peer join --source 127.0.0.1:7000 --output out.bin --timeout 10 2>join.log
code=$?
kill -TERM "$source_pid" 2>/dev/null
wait "$source_pid"
cmp in.bin out.bin && [ "$code" -eq 0 ] && exit 0
printf 'FAIL: join exits %s\n' "$code" >&2
cat -- source.log join.log >&2
exit 1
