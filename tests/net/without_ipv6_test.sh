#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft peer` works on a kernel without IPv6, which a seccomp filter simulates: all its sockets are
# IPv4 then, and IPv6 addresses are refused.
weft=$(readlink -f -- "$1")
without_ipv6=$(readlink -f -- "$2")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"
weft_peer=("$without_ipv6" "${weft_peer[@]}")

"$without_ipv6" true 2>why.txt
if [ $? -eq 125 ]; then
  printf 'SKIPPED: needs seccomp filters without privileges: %s\n' "$(cat why.txt)"
  exit 0
fi

# until_true COMMAND...: tries for ten seconds
until_true() {
  for ((i = 0; i < 200; i++)); do
    "$@" && return 0
    sleep 0.05
  done
  return 1
}

# shellcheck disable=SC2317 # called by until_true
has() { grep -q -- "$1" "$2" 2>/dev/null; }
# shellcheck disable=SC2317 # called by until_true
long() { [ "$(stat -c %s "$2" 2>/dev/null || echo 0)" -ge "$1" ]; }

http_get() { # PORT PATH FILE: writes the body
  python3 -c 'import sys, urllib.request as u
sys.stdout.buffer.write(u.urlopen(f"http://127.0.0.1:{sys.argv[1]}{sys.argv[2]}", timeout=30).read())' \
    "$1" "$2" >"$3" 2>/dev/null
}

head -c 2000000 /dev/urandom >in.bin

# --- A file to a file, from a source that listens on any address, with metrics. There is one source
# for each joining peer, as it ends when the peers that came have everything.
start source source --input in.bin --listen :0 --metrics :0
source_pid=$pid
port=$(port_of source) || fail "the source does not start"
has ' listen=0\.0\.0\.0:' source.log || fail "any address is not 0.0.0.0"
http_get "$(port_of source metrics)" /metrics metrics.txt || fail "no metrics"
has '^weft_peer_packets_sent_total ' metrics.txt || fail "metrics without packets"
start tofile join --source "127.0.0.1:$port" --output out.bin --startup 0
wait "$pid" || fail "join to a file: exit $?"
cmp in.bin out.bin || fail "the file differs"
wait "$source_pid" || fail "the source: exit $?"

# --- Over HTTP.
start httpsource source --input in.bin --listen 127.0.0.1:0
source_pid=$pid
http_port=$((20000 + RANDOM % 20000))
start tohttp join --source "127.0.0.1:$(port_of httpsource)" --output "http://127.0.0.1:$http_port/" --startup 0
to_http=$pid
until_true http_get "$http_port" / out2.bin || fail "no answer of the HTTP output"
cmp in.bin out2.bin || fail "the HTTP output differs"
wait "$source_pid" || fail "the source of HTTP: exit $?"
wait "$to_http" || fail "join to HTTP: exit $?"

# --- UDP in and out.
udp_in=$((20000 + RANDOM % 20000))
udp_out=$((udp_in + 1))
start udpsource source --input "udp://:$udp_in" --listen 127.0.0.1:0
udp_source=$pid
start udprelay source --input "udp://127.0.0.1:$udp_out" --listen 127.0.0.1:0
start toudp join --source "127.0.0.1:$(port_of udpsource)" --output "udp://127.0.0.1:$udp_out" --startup 0
start fromudp join --source "127.0.0.1:$(port_of udprelay)" --output out3.bin --startup 0
from_udp=$pid
until_true has '^info stream' toudp.log || fail "no stream of a UDP input"
until_true has '^info stream' fromudp.log || fail "no stream of a second UDP input"
for ((i = 0; i < 300; i++)); do # 300 datagrams of 1316 bytes
  dd if=in.bin bs=1316 skip="$i" count=1 status=none >"/dev/udp/127.0.0.1/$udp_in"
done
until_true long 262144 out3.bin || fail "UDP output: too few bytes"
cmp -n "$(stat -c %s out3.bin 2>/dev/null || echo 0)" in.bin out3.bin || fail "the UDP output differs"
kill -TERM "$udp_source" "$from_udp"
wait "$udp_source" || fail "the source of a UDP input: exit $?"
wait "$from_udp" || fail "join behind a UDP output: exit $?"

# --- IPv6 addresses do not become the IPv4 address in their last bytes (127.0.0.1).
none="Address family not supported by protocol"
expect 3 "--listen [2001:db8::7f00:1]:0: $none" source --input in.bin --listen '[2001:db8::7f00:1]:0'
expect 3 "$none" source --input in.bin --listen 127.0.0.1:0 --metrics '[2001:db8::7f00:1]:7000'
expect 3 "$none" source --input 'udp://[2001:db8::7f00:1]:7000' --listen 127.0.0.1:0
expect 3 "cannot send to [2001:db8::7f00:1]:7000: Address family not supported" join --source '[2001:db8::7f00:1]:7000' --output x --timeout 1
for output in udp http; do
  start "for$output" source --input in.bin --listen 127.0.0.1:0
  expect 3 "$none" join --source "127.0.0.1:$(port_of "for$output")" --output "$output://[2001:db8::7f00:1]:7000" --timeout 20
done

[ "$bad" -eq 0 ] && printf 'every input and output without IPv6\n'
exit "$bad"
