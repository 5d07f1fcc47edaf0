#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A name with several addresses works if one answers, and so does a name whose address changes.
# Without user namespaces, it says so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_alone names "$@"
ip addr add fd00::1/64 dev lo nodad || exit 1
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
  source_code=$?
  # There is a route to one address only: the others are not waited for, nor dialled once there is a
  # session.
  [ "$(grep -c unreachable join.log)" -eq 0 ] && cmp in.bin $name.bin && [ "$code $source_code" = '0 0' ] && continue
  printf 'FAIL: %s: join exits %s, source %s\n' "$name" "$code" "$source_code" >&2
  cat -- source.log join.log >&2
  bad=1
done

fail() {
  printf 'FAIL: %s\n' "$1" >&2
  cat -- ./*.log >&2
  bad=1
}

# A name gets another address while it is dialled at the old one, which does not answer. An address
# that is dialled for ever is reported after 1, 2, 4, 8... attempts.
ip addr add fd00::2/64 dev lo nodad && ip addr add fd00::3/64 dev lo nodad || exit 1
echo 'fd00::2 moves.test' >hosts
"$weft" peer source --input in.bin --rate 1M --listen '[fd00::1]:7000' --tracker 'moves.test:7001,[fd00::3]:7002' \
  --log-level debug 2>source.log &
source_pid=$!
"$weft" peer tracker --listen '[fd00::1]:7001' --log-level debug 2>tracker.log &
tracker_pid=$!
for ((i = 0; i < 300; i++)); do
  grep -q '^debug looked-up host=moves.test:7001 addresses=1' source.log && break
  sleep 0.1
done
echo 'fd00::1 moves.test' >hosts
for ((i = 0; i < 600; i++)); do
  [ "$(grep -c '^debug looked-up host=moves.test:7001 addresses=1' source.log)" -ge 2 ] && break
  sleep 0.1
done
timeout 30 "$weft" peer join --source '[fd00::1]:7001' --output moved.bin --timeout 15 2>join.log ||
  fail "join, at the new address: exit $?"
cmp in.bin moved.bin || fail "other bytes, at the new address"
calls() { grep -c "${1:-} unreachable address=.fd00::3.:7002 " source.log; }
for ((i = 0; i < 600; i++)); do
  [ "$(calls)" -ge 3 ] && break
  sleep 0.1
done
kill -TERM "$source_pid" "$tracker_pid"
wait "$source_pid" || fail "source: exit $?"
wait "$tracker_pid" || fail "tracker: exit $?"
wanted=0
for ((i = 1; i <= $(calls); i *= 2)); do wanted=$((wanted + 1)); done
if [ "$(calls)" -lt 3 ] || [ "$(calls ^warning)" -ne "$wanted" ]; then
  fail "$(calls ^warning) of $(calls) calls in vain are told"
fi
exit "$bad"
