#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Inputs may be multicast groups, and an output a broadcast address. Without user namespaces, it
# says so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_alone groups "$@"
# With IPv6, what is sent to a group comes back on the device that it leaves by, but not on the
# loopback.
if ! ip link set lo multicast on up || ! ip link add near type veth peer name far; then
  printf 'skipped: needs veth\n'
  exit 0
fi
ip link set far up && ip link set near up || exit 1
bad=0

fail() {
  printf 'FAIL: %s\n' "$1" >&2
  tail -n 20 -- ./*.log >&2
  bad=1
}

# A group without a route is refused; otherwise the source would wait for nothing.
timeout 20 "$weft" peer source --input udp://239.1.2.3:5004 2>refused.log
code=$?
[ "$code" -eq 3 ] || fail "a group without a route: exit $code, not 3"

ip route add 239.0.0.0/8 dev lo || exit 1
for group in 239.1.2.3 ff05::1:3; do
  host=$group
  [ "${host#*:}" = "$host" ] || host="[$host]"
  "$weft" peer source --input "udp://$host:5004" --listen 127.0.0.1:7000 2>source.log &
  source_pid=$!
  "$weft" peer join --source 127.0.0.1:7000 --output udp://127.255.255.255:5005 --startup 0 --timeout 20 2>join.log &
  join_pid=$!
  # Sends to the group until something comes back by broadcast.
  timeout 30 python3 - "$group" <<'PYTHON' || fail "$group: nothing came"
import socket, sys
group = sys.argv[1]
family = socket.AF_INET6 if ":" in group else socket.AF_INET
out = socket.socket(family, socket.SOCK_DGRAM)
if family == socket.AF_INET6:
    out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("near"))
back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
back.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
back.bind(("127.255.255.255", 5005))
back.settimeout(0.01)
while True:
    try:
        out.sendto(b"G" * 1316, (group, 5004))
        assert back.recv(2000) == b"G" * 1316
        break
    except OSError:  # a timeout; or the device has no address yet
        pass
PYTHON
  kill -KILL "$source_pid" "$join_pid"
  wait "$source_pid" "$join_pid" 2>/dev/null
done
exit "$bad"
