#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A source in a home network has its router open a port, by NAT-PMP and by UPnP, and a viewer
# outside, behind a symmetric NAT, reaches it there without a tracker; then other nodes pass that
# port on. The router is a namespace with miniupnpd, which manages nftables rules. It and the
# outside network map each path to its own port.
#
#   home 192.168.7.2 -+
#                     +- router 5.6.7.1 -- world 5.6.7.2 -- far 10.0.9.2
#   beside 192.168.8.2 +       |
#                          hub 5.6.8.2, which all can call
#
# Without user namespaces, miniupnpd, nft, ip or python3, it says so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
PATH=$PATH:/usr/sbin
for program in miniupnpd nft ip python3; do
  command -v "$program" >/dev/null && continue
  printf 'skipped: needs %s\n' "$program"
  exit 0
done
enter_alone map_port "$@"
mount -t tmpfs none /run && mkdir /run/netns || exit 1
if ! nft 'table ip probe { chain out { type nat hook postrouting priority 100; masquerade; }; }' 2>/dev/null; then
  printf 'skipped: needs NAT of nftables in this kernel\n'
  exit 0
fi
nft delete table ip probe
# miniupnpc parses numbers in text that has no terminating zero, but a line end after each number.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:strict_string_checks=0
bad=0 router_pid=''
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null' EXIT
fail() {
  printf 'FAIL: %s\n' "$1" >&2
  tail -n 8 ./*.log >&2
  bad=1
}

# link NAME OUTER INNER NAMESPACE DEVICE: links this network, the router's, to another
link() {
  ip netns add "$4" && ip link add "$1" type veth peer name "$5" netns "$4" && ip addr add "$2/24" dev "$1" &&
    ip link set "$1" up && ip -n "$4" addr add "$3/24" dev "$5" && ip -n "$4" link set "$5" up &&
    ip -n "$4" link set lo up
}
link lan 192.168.7.1 192.168.7.2 home lan && link side 192.168.8.1 192.168.8.2 beside lan &&
  link wan 5.6.7.1 5.6.7.2 world wan && link hub 5.6.8.1 5.6.8.2 hub hub && ip netns add far &&
  ip -n hub route add default via 5.6.8.1 && ip -n world route add default via 5.6.7.1 &&
  ip -n home route add default via 192.168.7.1 && ip -n beside route add default via 192.168.8.1 &&
  ip -n home addr add 192.168.7.3/24 dev lan &&
  ip -n world link add lan type veth peer name lan netns far && ip -n world addr add 10.0.9.1/24 dev lan &&
  ip -n world link set lan up && ip -n far addr add 10.0.9.2/24 dev lan && ip -n far link set lan up &&
  ip -n far route add default via 10.0.9.1 && echo 1 >/proc/sys/net/ipv4/ip_forward &&
  ip netns exec world sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' &&
  ip netns exec world nft 'table ip nat { chain out { type nat hook postrouting priority 100; oifname "wan" masquerade random,fully-random; }; }' || exit 1
nft -f - <<EOT || exit 1
table inet filter {
  chain miniupnpd { }
  chain miniupnpd_in { }
  chain miniupnpd_out { }
  chain forward { type filter hook forward priority 0; policy drop
    ct state established,related accept
    iifname { "lan", "side", "hub" } accept
    oifname "hub" accept
    jump miniupnpd
  }
  chain before { type nat hook prerouting priority -100; jump miniupnpd_in; }
  chain after { type nat hook postrouting priority 100; ip saddr 192.168.0.0/16 snat ip to 5.6.7.1 random,fully-random; }
}
EOT

# start_router LINE...: lines of miniupnpd.conf, in addition to the common ones
start_router() {
  printf '%s\n' ext_ifname=wan listening_ip=lan listening_ip=side secure_mode=yes port=5555 upnp_table_name=filter \
    upnp_nat_table_name=filter upnp_forward_chain=miniupnpd upnp_nat_chain=miniupnpd_in \
    upnp_nat_postrouting_chain=miniupnpd_out "$@" >router.conf
  : >router.log # now, or the last router's output would be taken for this one's
  miniupnpd -d -4 -f router.conf -P /run/router.pid >router.log 2>&1 &
  router_pid=$!
  router_listens
}

router_listens() {
  for ((i = 0; i < 100; i++)); do
    grep -q 'listening on' router.log && break
    sleep 0.05
  done
}

stop_router() {
  kill "$router_pid" && wait "$router_pid" 2>/dev/null
}

open_ports() { # prints the router's open ports
  nft list chain inet filter miniupnpd_in | grep -c dnat
}

# start_node NAMESPACE WORD OPTION...: logs to NAMESPACE.log; sets $node_pid
start_node() {
  local space=$1
  shift
  : >"$space.log"
  ip netns exec "$space" "$weft" peer "$@" 2>"$space.log" &
  node_pid=$!
}

# told NAMESPACE TEXT: waits until its log says so
told() {
  for ((i = 0; i < 600; i++)); do
    grep -qE "$2" "$1.log" && return
    sleep 0.05
  done
  fail "$1 does not say '$2' within 30 s"
}

# ends NAME: the node ends at SIGTERM, within the time that the router may take to answer
ends() {
  local start=$SECONDS
  kill -TERM "$node_pid"
  wait "$node_pid"
  code=$?
  [ "$code" -eq 0 ] || fail "$1: exit $code"
  [ $((SECONDS - start)) -le 5 ] || fail "$1: it took $((SECONDS - start)) s to end"
}

# plays ADDRESS: far fetches the stream from there
plays() {
  rm -f out.bin
  ip netns exec far timeout 30 "$weft" peer join --source "$1" --output out.bin --timeout 10 --linger 0 2>far.log
  code=$?
  if [ "$code" -ne 0 ] || ! cmp -s in.bin out.bin; then
    fail "far joins at $1: exit $code"
  fi
}

head -c 300000 /dev/urandom >in.bin
source=(source --input in.bin --rate 8M --listen :7000 --linger 1)

# Without a request to the router, the source cannot be called.
start_router enable_natpmp=yes enable_upnp=yes 'allow 1024-65535 0.0.0.0/0 1024-65535'
start_node home "${source[@]}"
told home '^info source'
ip netns exec far timeout 30 "$weft" peer join --source 5.6.7.1:7000 --output out.bin --timeout 1 2>far.log
code=$?
[ "$code" -eq 3 ] || fail "far joins through a closed port: exit $code"
ends 'the source that asks for nothing'

# NAT-PMP.
start_node home "${source[@]}" --map-port on --metrics 127.0.0.1:9100
told home '^info mapped address=5\.6\.7\.1:7000 by=nat-pmp$'
[ "$(open_ports)" -eq 1 ] || fail "NAT-PMP: $(open_ports) ports are open"
plays 5.6.7.1:7000
ends 'the source by NAT-PMP'
[ "$(open_ports)" -eq 0 ] || fail 'NAT-PMP: the port is still open'
stop_router

# UPnP, where another machine has the port already: another outside port is used.
start_router enable_natpmp=no enable_upnp=yes 'allow 1024-65535 0.0.0.0/0 1024-65535'
start_node beside tracker --listen :7000 --map-port on --log-format json
told beside '"event":"mapped","address":"5\.6\.7\.1:7000","by":"upnp"'
beside_pid=$node_pid
start_node home "${source[@]}" --map-port on
told home '^info mapped address=5\.6\.7\.1:[0-9]* by=upnp$'
outside=$(sed -n 's/^info mapped address=\([^ ]*\) .*/\1/p' home.log)
[ "$outside" != 5.6.7.1:7000 ] || fail 'UPnP: two machines have one port'
plays "$outside"
ends 'the source by UPnP'
[ "$(open_ports)" -eq 1 ] || fail "UPnP: $(open_ports) ports are open, not the tracker's alone"
node_pid=$beside_pid
ends 'the tracker'
stop_router

# Failures: the node listens at another address than the router knows; the router refuses; it is
# behind another NAT.
start_router enable_natpmp=yes enable_upnp=yes 'allow 1024-65535 0.0.0.0/0 1024-65535'
start_node home "${source[@]}" --listen 192.168.7.3:7000 --map-port on
told home '^warning not-mapped reason=other-address$'
ends 'the source at another address'
stop_router
start_router enable_natpmp=no enable_upnp=yes 'deny 0-65535 0.0.0.0/0 0-65535'
start_node home "${source[@]}" --map-port on
told home '^warning not-mapped reason=refused$'
ends 'the source that is refused'
stop_router

# Behaviour that no daemon has on request: a router that is behind a NAT itself, gives another port,
# for 22 s, and sends late answers to other requests.
: >router.log
python3 - >router.log 2>&1 <<'EOT' &
import socket, struct

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("192.168.7.1", 5351))
print("listening on", flush=True)
while True:
    request, peer = s.recvfrom(64)
    print(request.hex(), flush=True)
    where = struct.pack("!BBHI4B", 0, 128, 0, 1, 100, 64, 1, 2)
    if request[1] == 0:
        s.sendto(where, peer)
    else:
        inner, outer, lease = struct.unpack("!HHI", request[4:12])
        s.sendto(where, peer)  # once more
        s.sendto(struct.pack("!BBHIHHI", 0, 129, 0, 1, inner, 7777 if lease else 0, min(lease, 22)), peer)
EOT
router_pid=$!
router_listens
start_node home "${source[@]}" --map-port on --metrics 127.0.0.1:9100
told home '^warning mapped-behind-nat address=100\.64\.1\.2:7777$'
ip netns exec home python3 -c '
import json, urllib.request as r
status, metrics = (r.urlopen("http://127.0.0.1:9100/" + page).read().decode() for page in ("status", "metrics"))
assert json.loads(status)["mapped"] == "100.64.1.2:7777", status
assert "\nweft_peer_port_mapped 1\n" in metrics, metrics' || fail '/status or /metrics'
for ((i = 0; i < 300; i++)); do
  [ "$(grep -c '^00010000' router.log)" -ge 4 ] && break # each is repeated after the late answer
  sleep 0.05
done
[ "$i" -lt 300 ] || fail 'the port was not asked for again at half of the lease'
grep '^00010000' router.log | tail -n 1 | grep -q '^000100001b581e61' || fail 'a renewal asks for another port'
ends 'the source behind two NATs'
tail -n 1 router.log | grep -q '^000100001b58000000000000$' || fail 'the port was not closed'
stop_router

# Two nodes behind symmetric NATs: a tracker tells one of the other's port at the router.
start_router enable_natpmp=yes enable_upnp=yes 'allow 1024-65535 0.0.0.0/0 1024-65535'
start_node hub tracker --listen :7001
tracker_pid=$node_pid
start_node home "${source[@]}" --tracker 5.6.8.2:7001
told home '^info source'
ip netns exec far timeout 30 "$weft" peer join --source 5.6.8.2:7001 --output out.bin --timeout 4 2>far.log
code=$?
[ "$code" -eq 3 ] || fail "far finds a source that nobody can call: exit $code"
ends 'the source that only the tracker hears'
start_node home "${source[@]}" --tracker 5.6.8.2:7001 --map-port on
told home '^info mapped address=5\.6\.7\.1:7000 by=nat-pmp$'
plays 5.6.8.2:7001
ends 'the source that the tracker told of'
node_pid=$tracker_pid
ends 'the tracker that told of it'

# So does a neighbour of both, the source of two viewers.
start_node hub source --input in.bin --rate 100k --listen :7000 --linger 1
hub_pid=$node_pid
told hub '^info source'
start_node far join --source 5.6.8.2:7000 --output far.bin --log-level debug
far_pid=$node_pid
start_node home join --source 5.6.8.2:7000 --output home.bin --log-level debug
told far '^debug neighbour address=5\.6\.8\.2:7000$'
told home '^debug neighbour address=5\.6\.8\.2:7000$'
sleep 5
grep -q '^debug neighbour address=5\.6\.7\.' far.log home.log && fail 'two whom nobody can call are neighbours'
ends 'the viewer whom nobody can call'
start_node home join --source 5.6.8.2:7000 --output home.bin --log-level debug --listen :7002 --map-port on
told home '^info mapped address=5\.6\.7\.1:7002 by=nat-pmp$'
told far '^debug neighbour address=5\.6\.7\.1:7002$'
for node_pid in "$node_pid" "$far_pid" "$hub_pid"; do
  ends 'a viewer, or the source of both'
done
stop_router

# No router takes such requests, and an address for which none could open a port.
start_node home "${source[@]}" --map-port on
told home '^warning not-mapped reason=no-router$'
ends 'the source without a router'
timeout 10 "$weft" peer "${source[@]}" --listen '[::1]:7000' --map-port on 2>usage.log
code=$?
[ "$code" -eq 2 ] || fail "--listen [::1]:7000 --map-port on: exit $code"
exit "$bad"
