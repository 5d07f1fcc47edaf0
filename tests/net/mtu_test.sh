#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a network whose packets are shorter than weft's datagrams, the kernel fragments them, and the
# stream arrives. Without user namespaces, it says so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_alone mtu "$@"
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
