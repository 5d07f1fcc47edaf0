#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names that have several addresses, of which one answers. Without user namespaces it says so and passes.
set -uo pipefail
if [ "${WEFT_IN_NAMESPACE:-}" != yes ]; then
  if ! unshare -Urnm ip link set lo up 2>/dev/null || ! unshare -Urnm mount -t tmpfs none /mnt 2>/dev/null; then
    printf 'skipped: needs user namespaces (unshare -Urnm), ip and mount\n'
    exit 0
  fi
  WEFT_IN_NAMESPACE=yes exec unshare -Urnm --propagation private "$0" "$@"
fi
weft=$(readlink -f -- "$1")
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/names.XXXXXX")
cd -- "$work" || exit 1
ip link set lo up && ip addr add fd00::1/64 dev lo nodad || exit 1
cat >hosts <<'EOF' && mount --bind hosts /etc/hosts || exit 1
192.0.2.1 both.test
fd00::1 both.test
fd00::1 six.test
fd00:9::1 six.test
EOF
head -c 300000 /dev/urandom >in.bin
bad=0
for name in both six; do
  "$weft" peer source --input in.bin --listen '[fd00::1]:7000' --linger 1 2>source.log &
  source_pid=$!
  timeout 60 "$weft" peer join --source $name.test:7000 --output $name.bin --timeout 30 2>join.log
  code=$?
  kill -TERM "$source_pid" 2>/dev/null
  wait "$source_pid"
  # There is a way to one alone: the others are not waited for, nor called once there is a session.
  [ "$(grep -c unreachable join.log)" -eq 0 ] && cmp in.bin $name.bin && [ "$code" -eq 0 ] && continue
  printf 'FAIL: %s: join exits %s\n' "$name" "$code" >&2
  cat -- source.log join.log >&2
  bad=1
done
exit "$bad"
