#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft peer` as processes on real sockets of the loopback: every input and output works, byte for
# byte; it reports the right things about itself; and it ends as it should. (What it refuses:
# peer_refusals_test.sh.)
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

same() { cmp -- "$1" "$2" || fail "$3"; }

head_of() { LC_ALL=C sed '/^\r$/q' "$1.raw"; }

# body_of FILE: what follows the headers, to the byte (sed would add a missing last line end)
body_of() {
  local head
  head=$(head_of "$1" | wc -c)
  tail -c +$((head + 1)) "$1.raw" >"$1"
}

{
  printf '\0\0\0\040ftypisom' # the beginning of an MP4
  head -c 2999988 /dev/urandom
} >in.bin

# --- A live source that is killed, so that no peer knows the end. Checked after everything else,
# below.
mkfifo cut.pipe
exec 7<>cut.pipe
start cutsource source --input - --listen 127.0.0.1:0 --rate 4M <cut.pipe
cut_source=$pid
declare -A cut=()
port=$(port_of cutsource)
start cut1 join --source "127.0.0.1:$port" --output cut1.bin --startup 100 --timeout 4
cut[cut1]=$pid
start cut2 join --source "127.0.0.1:$port" --output cut2.bin --startup 100 --timeout 4
cut[cut2]=$pid
for ((i = 0; i < 200; i++)); do
  grep -q '^info stream' cut1.log && grep -q '^info stream' cut2.log && break
  sleep 0.05
done
cat in.bin >&7 2>/dev/null &
pids+=("$!") # reads its own pipe, too: it ends by being killed
for ((i = 0; i < 200; i++)); do
  [ "$(stat -c %s cut1.bin 2>/dev/null || echo 0)" -ge 300000 ] && break
  sleep 0.05
done
kill -KILL "$cut_source"
exec 7>&-
start cut3 join --source "127.0.0.1:$(port_of cut1)" --output cut3.bin --startup 100 --timeout 4 # joins after that
cut[cut3]=$pid

# --- A live source that ends while its viewers have a lag to play, longer than an unanswered call
# takes. Checked at the end, too.
start tailsource source --input - --listen 127.0.0.1:0 --rate 4M --lag 12s < <(cat in.bin)
tail_source=$pid
port=$(port_of tailsource)
start tail1 join --source "127.0.0.1:$port" --output tail1.bin --log-level debug
tail1=$pid

# --- A file to a file and to standard output, two receivers, with metrics; the source ends by
# SIGTERM.
start source source --input in.bin --listen 127.0.0.1:0 --rate 24M --metrics 127.0.0.1:0 --linger 60 --stream 12
source_pid=$pid
port=$(port_of source) || fail "the source did not start"
key=$(sed -n 's/.* key=\([0-9a-f]*\).*/\1/p' source.log | head -n 1)
start join1 join --source "127.0.0.1:$port" --output out1.bin --source-key "$key" --startup 200
join1=$pid
for ((i = 0; i < 200; i++)); do
  [ -s out1.bin ] && break
  sleep 0.05
done
metrics=$(port_of source metrics)
http_get 127.0.0.1 "$metrics" /metrics metrics.txt || fail "no metrics"
grep -q '^weft_peer_packets_sent_total [1-9]' metrics.txt || fail "metrics without packets"
grep -q '^weft_peer_taken_bytes_total [1-9]' metrics.txt || fail "metrics without the input's bytes"
http_get 127.0.0.1 "$metrics" /healthz health.txt
grep -qx ok health.txt || fail "not healthy: $(cat health.txt)"
http_get 127.0.0.1 "$metrics" /status status.json
grep -q '"role": "source"' status.json || fail "no status"
http_get 127.0.0.1 "$metrics" /none none.txt
grep -q '404' none.txt.raw || fail "a page that is not there"
timeout 60 "$weft" peer join --source "127.0.0.1:$port" --output - --startup 0 --log-format json >out2.bin 2>join2.log ||
  fail "join to standard output: exit $?"
wait "$join1" || fail "join to a file: exit $?"
same in.bin out1.bin "file output"
same in.bin out2.bin "standard output"
# The stream 0x12 is named as in /status, not as a decimal number.
grep -q '"event":"stream","id":"0000000000000012",.*"blocks":[1-9]' join2.log || fail "no stream in the JSON log"
grep -q '"id": "0000000000000012"' status.json || fail "no stream in the status"

# --- A machine with several addresses: a node that dials one of them, as 127.0.0.2, takes answers
# only from that one
start many source --input in.bin --listen :0 --linger 1
many=$pid
timeout 20 "$weft" peer join --source "127.0.0.2:$(port_of many)" --output many.bin --timeout 5 2>many1.log ||
  fail "join at another address: exit $?"
wait "$many" || fail "source with several addresses: exit $?"
same in.bin many.bin "another address"

# --- From somewhere within: by bytes, by seconds (24 Mbit/s, whole packets of MPEG-TS), by HTTP
# ranges
timeout 60 "$weft" peer join --source "127.0.0.1:$port" --output - --startup 0 --from 1000001B >part1.bin 2>from1.log ||
  fail "--from bytes: exit $?"
tail -c +1000002 in.bin | cmp - part1.bin || fail "--from bytes: other bytes"
timeout 60 "$weft" peer join --source "127.0.0.1:$port" --output part2.bin --startup 0s --from 500ms 2>from2.log ||
  fail "--from seconds: exit $?"
tail -c +$((1500000 / 188 * 188 + 1)) in.bin | cmp - part2.bin || fail "--from seconds: other bytes"
echo kept >kept.txt
expect 2 "past the end" join --source "127.0.0.1:$port" --output kept.txt --from 3000000B
expect 2 "past the end" join --source "127.0.0.1:$port" --output kept.txt --from 1000000000
[ "$(cat kept.txt)" = kept ] || fail "--from past the end emptied the output"

# --- A named pipe: its reader may come late, and SIGTERM still ends the peer. (For one that stalls:
# cut_test.sh.)
stream_of() { # NAME: waits until it has the stream
  local i
  for ((i = 0; i < 200; i++)); do
    grep -q '^info stream' "$1.log" && return
    sleep 0.05
  done
  fail "$1: no stream"
}
ends_by_term() { # PID WHAT
  local i
  kill -TERM "$1"
  for ((i = 0; i < 100; i++)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.05
  done
  kill -KILL "$1" 2>/dev/null && fail "$2: it did not end by SIGTERM"
  wait "$1" || fail "$2, after SIGTERM: exit $?"
}
mkfifo out.pipe
start unread join --source "127.0.0.1:$port" --output out.pipe --startup 0
stream_of unread
ends_by_term "$pid" "a named pipe that nobody reads"
start piped join --source "127.0.0.1:$port" --output out.pipe --startup 0
piped=$pid
stream_of piped
timeout 60 cat out.pipe >out.piped
wait "$piped" || fail "join to a named pipe: exit $?"
same in.bin out.piped "named pipe"

http_port=$((20000 + RANDOM % 20000))
start seeker join --source "127.0.0.1:$port" --output "http://127.0.0.1:$http_port/" --startup 100 --linger 30 --timeout 60
seeker=$pid
for ((i = 0; i < 200; i++)); do
  grep -q '^info stream' seeker.log && break
  sleep 0.05
done
range() { # FIRST LAST FILE
  http_get 127.0.0.1 "$http_port" / "$3" "Range: bytes=$1-$2" || fail "no answer to the range $1-$2"
  body_of "$3"
  head_of "$3" | grep -q ' 206 ' || fail "range $1-$2: $(head -n 1 "$3.raw")"
  head_of "$3" | grep -qi '^content-type: video/mp4' || fail "range $1-$2: another type"
  head_of "$3" | grep -qi "^content-range: bytes $1-${2:-2999999}/3000000" || fail "range $1-$2: no Content-Range"
  local bytes=$((${2:-2999999} - $1 + 1))
  [ "$(stat -c %s "$3")" -eq "$bytes" ] || fail "range $1-$2: $(stat -c %s "$3") bytes, not $bytes"
  cmp -i "$1:0" -n "$bytes" in.bin "$3" || fail "range $1-$2: other bytes"
}
range 2000003 2500000 range1.bin # forwards
range 100000 399999 range2.bin   # and back
range 2900001 "" range3.bin      # to the end
range 5 6 range4.bin             # beyond it
http_get 127.0.0.1 "$http_port" / range5.bin "Range: bytes=3000000-"
head_of range5.bin | grep -q ' 416 ' || fail "a range past the end: $(head -n 1 range5.bin.raw)"
http_get 127.0.0.1 "$http_port" / whole.bin
body_of whole.bin
same in.bin whole.bin "the whole over HTTP"
kill -TERM "$seeker"
wait "$seeker" || fail "the HTTP output after SIGTERM: exit $?"

# With --from the URL is the film from there on, for clients with and without ranges, first and later.
first=$((1500000 / 188 * 188))
left=$((3000000 - first))
http_port=$((20000 + RANDOM % 20000))
start later join --source "127.0.0.1:$port" --output "http://127.0.0.1:$http_port/" --startup 100 --linger 30 --timeout 60 --from 500ms
later=$pid
stream_of later
from() { # FIRST LAST FILE HEADER...: expects those bytes, counted from where it begins, and that header
  http_get 127.0.0.1 "$http_port" / "$3" ${5:+"$5"} || fail "--from over HTTP: no answer to '${5:-}'"
  body_of "$3"
  head_of "$3" | grep -qi "^$4" || fail "--from over HTTP, '${5:-}': no $4 in $(head_of "$3")"
  [ "$(stat -c %s "$3")" -eq $(($2 - $1 + 1)) ] || fail "--from over HTTP, '${5:-}': $(stat -c %s "$3") bytes"
  cmp -i $((first + $1)):0 -n $(($2 - $1 + 1)) in.bin "$3" || fail "--from over HTTP, '${5:-}': other bytes"
}
from 0 $((left - 1)) from1.bin "content-length: $left"
from 0 $((left - 1)) from2.bin "content-range: bytes 0-$((left - 1))/$left" "Range: bytes=0-"
from 1000000 1200000 from3.bin "content-range: bytes 1000000-1200000/$left" "Range: bytes=1000000-1200000"
from $((left - 1000)) $((left - 1)) from4.bin "content-range: bytes $((left - 1000))-$((left - 1))/$left" "Range: bytes=-1000"
from 0 $((left - 1)) from5.bin "content-length: $left"
http_get 127.0.0.1 "$http_port" / from6.bin "Range: bytes=$left-"
head_of from6.bin | grep -q ' 416 ' || fail "--from over HTTP: a range past the end: $(head -n 1 from6.bin.raw)"
kill -TERM "$later"
wait "$later" || fail "--from over HTTP after SIGTERM: exit $?"

# --- An HTTP client may be slower than the stream: it gets the rest after the end. One that reads
# nothing is left.
head -c 7000000 /dev/urandom >long.bin
start slowsource source --input long.bin --listen 127.0.0.1:0 --linger 1
slow_source=$pid
http_port=$((20000 + RANDOM % 20000))
start slow join --source "127.0.0.1:$(port_of slowsource)" --output "http://127.0.0.1:$http_port/" --startup 0 --timeout 2
slow=$pid
python3 - "$http_port" <<'PYTHON' || fail "a slow reader over HTTP did not get everything"
import socket, sys, time
def ask():
    for _ in range(200):
        try:
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            s.connect(("127.0.0.1", int(sys.argv[1])))
            s.sendall(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
            return s
        except OSError:
            s.close()
            time.sleep(0.05)
    sys.exit("no connection")
never, slow, got = ask(), ask(), b""
while chunk := slow.recv(1 << 20):
    got += chunk
    time.sleep(len(chunk) / 1500000)
body = got[got.index(b"\r\n\r\n") + 4:]
sys.exit(0 if body == open("long.bin", "rb").read() else f"{len(body)} bytes")
PYTHON
left=$SECONDS
wait "$slow" || fail "join whose reader took nothing: exit $?"
[ $((SECONDS - left)) -le 20 ] || fail "a reader who takes nothing holds a fetch for $((SECONDS - left)) s with --timeout 2"
kill -TERM "$slow_source" 2>/dev/null
wait "$slow_source" || fail "the source of a slow reader: exit $?"

# --- A fetch waits for its HTTP client, however late, and goes on as the client reads: all of it,
# from the beginning.
head -c 20000000 /dev/urandom >long.bin
start fetchsource source --input long.bin --listen 127.0.0.1:0 --linger 1
fetch_source=$pid
http_port=$((20000 + RANDOM % 20000))
start fetcher join --source "127.0.0.1:$(port_of fetchsource)" --output "http://127.0.0.1:$http_port/" --startup 0 --timeout 1
fetcher=$pid
for ((i = 0; i < 200; i++)); do
  grep -q '^info waiting' fetcher.log && break
  sleep 0.05
done
sleep 2.5 # everything has come, and --timeout is over
http_get 127.0.0.1 "$http_port" / fetched.bin || fail 'a fetch did not wait for its reader over HTTP'
body_of fetched.bin
same long.bin fetched.bin 'who asked late for a fetch over HTTP'
wait "$fetcher" || fail "a fetch over HTTP: exit $?"
wait "$fetch_source" || fail "the source of a fetch over HTTP: exit $?"

# --- The source leaves before any client has asked: a peer that holds everything waits on, another
# says that it is lost.
for window in '' --window=16; do # segments of 64 KiB; else as many as the file has
  head -c 4000000 long.bin >gone.bin
  start gonesource source --input gone.bin --listen 127.0.0.1:0 --linger 0
  fetch_source=$pid
  http_port=$((20000 + RANDOM % 20000))
  start orphan join --source "127.0.0.1:$(port_of gonesource)" --output "http://127.0.0.1:$http_port/" --startup 0 \
    --timeout 1 ${window:+"$window"}
  fetcher=$pid
  for ((i = 0; i < 200; i++)); do
    grep -q '^info waiting' orphan.log && break
    sleep 0.05
  done
  if [ -z "$window" ]; then
    wait "$fetch_source" || fail "the source of who fetched all of it: exit $?"
    sleep 2 # --timeout is over
    http_get 127.0.0.1 "$http_port" / fetched.bin || fail 'who had all of a fetch did not wait for its reader'
    body_of fetched.bin
    same gone.bin fetched.bin 'who asked for a fetch whose source had gone'
    wait "$fetcher" || fail "a fetch whose source had gone: exit $?"
  else
    kill -TERM "$fetch_source"
    wait "$fetch_source"
    wait "$fetcher"
    code=$?
    [ "$code" -eq 1 ] || fail "a fetch that lost its source before anybody asked: exit $code"
    grep -q 'the stream was lost after 0 bytes' orphan.log || fail 'a fetch did not say that it lost its source'
  fi
done

kill -TERM "$source_pid" 2>/dev/null # it may have ended: all had everything
wait "$source_pid"
code=$?
[ "$code" -eq 0 ] || fail "the source after SIGTERM: exit $code"

# --- Standard input, live, through a tracker, to HTTP.
start tracker tracker --listen 127.0.0.1:0
tracker=$(port_of tracker)
health() { # WHAT: what a peer that joined says of itself, in the end
  local i
  for ((i = 0; i < 100; i++)); do
    http_get 127.0.0.1 "$waiter_metrics" /healthz health.txt 2>/dev/null && grep -qx "$1" health.txt && return
    sleep 0.05
  done
  fail "beside a tracker: not '$1' but '$(cat health.txt)'"
}
expect 3 "127.0.0.1:$tracker answered, but had no stream within 1 s" \
  join --source "127.0.0.1:$tracker" --output x --timeout 1
start waiter join --source "127.0.0.1:$tracker" --output waiter.bin --metrics 127.0.0.1:0 --timeout 60
waiter=$pid
waiter_metrics=$(port_of waiter metrics)
for ((i = 0; i < 100; i++)); do
  http_get 127.0.0.1 "$waiter_metrics" /status status.json 2>/dev/null && grep -q '"sessions": 1' status.json && break
  sleep 0.05
done
sleep 0.2 # it looks ten times a second
health "no neighbours"
grep -q '"neighbours": 0' status.json || fail "a tracker is counted as a neighbour in /status"
http_get 127.0.0.1 "$waiter_metrics" /metrics metrics.txt
grep -q '^weft_peer_neighbours 0$' metrics.txt || fail "a tracker is counted as a neighbour in /metrics"
grep -q '^weft_peer_sessions 1$' metrics.txt || fail "the session with a tracker is not counted"
mkfifo pipe
exec 8<>pipe
start live source --input - --listen 127.0.0.1:0 --tracker "127.0.0.1:$tracker" <pipe
live_pid=$pid
http_port=$((20000 + RANDOM % 20000))
start join3 join --source "127.0.0.1:$tracker" --output "http://127.0.0.1:$http_port/"
join3=$pid
for ((i = 0; i < 200; i++)); do
  grep -q '^info stream' join3.log && break
  sleep 0.05
done
health ok
kill -TERM "$waiter"
wait "$waiter" || fail "beside a tracker, after SIGTERM: exit $?"
head -c 300000 in.bin >&8
for ((i = 0; i < 100; i++)); do
  http_get 127.0.0.1 "$http_port" / out3.bin 2>/dev/null 8>&- &
  reader=$!
  sleep 0.3
  kill -0 "$reader" 2>/dev/null && break
done
tail -c +300001 in.bin >&8
exec 8>&-
wait "$reader"
wait "$join3" || fail "join to HTTP: exit $?"
wait "$live_pid" || fail "live source at the end of its input: exit $?"
# A live stream is received from its position when the peer knew its times: whole segments, to the
# end.
body_of out3.bin
bytes=$(stat -c %s out3.bin)
if [ $(((3000000 - bytes) % 65536)) -ne 0 ] || [ "$bytes" -lt 2600000 ]; then
  fail "HTTP output: $bytes bytes"
fi
tail -c "$bytes" in.bin | cmp - out3.bin || fail "HTTP output differs"

# A client that asks before there is a stream waits for it, also for a range of one on demand.
prompt_port=$((20000 + RANDOM % 20000))
http_port=$((20000 + RANDOM % 20000))
start prompt join --source "127.0.0.1:$prompt_port" --output "http://127.0.0.1:$http_port/" --startup 100 --timeout 60
prompt=$pid
port_of prompt >/dev/null
http_get 127.0.0.1 "$http_port" / prompt.bin "Range: bytes=1000-300000" &
reader=$!
sleep 0.3
start promptsource source --input in.bin --rate 20M --listen "127.0.0.1:$prompt_port"
wait "$reader" || fail 'who asked before the stream was there got nothing'
body_of prompt.bin
head_of prompt.bin | grep -qi '^content-range: bytes 1000-300000/3000000' || fail "a range asked for early: $(head_of prompt.bin)"
cmp <(tail -c +1001 in.bin | head -c 299001) prompt.bin || fail 'a range asked for early: other bytes'
kill -TERM "$prompt" "$pid"
wait "$prompt" "$pid"

# --- UDP in and out: order and loss depend on the network; here there is no loss.
udp_in=$((20000 + RANDOM % 20000))
udp_out=$((udp_in + 1))
start udpsource source --input "udp://127.0.0.1:$udp_in" --listen 127.0.0.1:0
udp_pid=$pid
port=$(port_of udpsource)
start udprelay source --input "udp://127.0.0.1:$udp_out" --listen 127.0.0.1:0
start join4 join --source "127.0.0.1:$port" --output "udp://127.0.0.1:$udp_out" --startup 0
start join5 join --source "127.0.0.1:$(port_of udprelay)" --output out4.bin --startup 0
relay_join=$pid
for ((i = 0; i < 200; i++)); do
  grep -q '^info stream' join4.log && grep -q '^info stream' join5.log && break
  sleep 0.05
done
for ((i = 0; i < 300; i++)); do # 300 datagrams of 1316 bytes
  dd if=in.bin bs=1316 skip="$i" count=1 status=none >"/dev/udp/127.0.0.1/$udp_in"
done
wanted=$((300 * 1316 / 65536 * 65536 - 65536)) # whole segments; the last waits for the end
for ((i = 0; i < 200; i++)); do
  [ "$(stat -c %s out4.bin 2>/dev/null || echo 0)" -ge $((wanted - 65536)) ] && break
  sleep 0.05
done
bytes=$(stat -c %s out4.bin 2>/dev/null || echo 0)
[ "$bytes" -ge 65536 ] || fail "UDP output: only $bytes bytes"
cmp -n "$bytes" in.bin out4.bin || fail "UDP output differs"
kill -TERM "$udp_pid" "$relay_join"
wait "$udp_pid" || fail "live source after SIGTERM: exit $?"
wait "$relay_join" || fail "join after SIGTERM: exit $?"

# --- The killed live source: what was there is played, then all peers notice, including one that
# came late.
for name in cut1 cut2 cut3; do
  wait "${cut[$name]}"
  code=$?
  [ "$code" -eq 1 ] || fail "$name, after its source was killed: exit $code, not 1"
  grep -q "the stream was lost" "$name.log" || fail "$name: a lost stream is not told"
done
for name in cut1 cut2; do
  bytes=$(stat -c %s "$name.bin")
  [ "$bytes" -ge 300000 ] || fail "$name played only $bytes bytes"
done

# --- The source of a live stream has left at its end, and viewers do not look for it.
wait "$tail1" || fail "join with a lag longer than a call: exit $?"
wait "$tail_source" || fail "a live source with a long lag: exit $?"
same in.bin tail1.bin 'a long lag'
grep -q unreachable tail1.log && fail 'a viewer calls the source of a live stream that has ended'

# --- A live source that is stopped says where the stream ends: every peer gets all of it, and exits
# 0.
mkfifo last.pipe
exec 7<>last.pipe
start stopped source --input - --listen 127.0.0.1:0 --rate 4M <last.pipe
stopped=$pid
start last1 join --source "127.0.0.1:$(port_of stopped)" --output last1.bin --startup 100
last1=$pid
for ((i = 0; i < 200; i++)); do
  grep -q '^info stream' last1.log && break
  sleep 0.05
done
cat in.bin >&7 2>/dev/null &
pids+=("$!") # reads its own pipe, too: it ends by being killed
sleep 2
kill -TERM "$stopped"
wait "$last1" || fail "join of a live source that was stopped: exit $?"
wait "$stopped" || fail "a live source that was stopped: exit $?"
exec 7>&-
bytes=$(stat -c %s last1.bin)
[ "$bytes" -ge 500000 ] || fail "a live source that was stopped: only $bytes bytes came"
grep -q "ended bytes=$bytes" last1.log || fail "a live source that was stopped: no end is told"
cmp -n "$bytes" in.bin last1.bin || fail "a live source that was stopped: other bytes"

# --- A stream whose source dies is lost, and that is reported.
start dying source --input in.bin --rate 800k --listen 127.0.0.1:0
dying=$pid
port=$(port_of dying)
start orphan join --source "127.0.0.1:$port" --output x --timeout 2 --startup 0 --window 4
orphan=$pid
for ((i = 0; i < 200; i++)); do
  [ -s x ] && break
  sleep 0.05
done
kill -TERM "$dying" # says goodbye: no peer has to wait for silence
wait "$orphan"
code=$?
[ "$code" -eq 1 ] || fail "a lost stream: exit $code, not 1"
grep -q "the stream was lost" orphan.log || fail "a lost stream is not told"

# --- What came of it is still played, for longer than that.
start fleeting source --input in.bin --rate 8M --listen 127.0.0.1:0 --linger 0
fleeting=$pid
start heir join --source "127.0.0.1:$(port_of fleeting)" --output heir.bin --timeout 1 --startup 0 --metrics 127.0.0.1:0
heir=$pid
metrics=$(port_of heir metrics)
for ((i = 0; i < 100; i++)); do
  http_get 127.0.0.1 "$metrics" /status status.json 2>/dev/null && grep -q '"complete": 46' status.json && break
  sleep 0.05
done
kill -TERM "$fleeting"
wait "$heir" || fail "a source that left when all of it had come: exit $?"
same in.bin heir.bin "what came of a source that left"

# --- A service is ready when it has a neighbour with the stream: a tracker alone is not enough.
python3 - "$weft" <<'PYTHON' || fail "READY=1"
import os, socket, subprocess, sys
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = f"weft-peer-test-{os.getpid()}"  # abstract: a path could be too long
heard.bind("\0" + name)
heard.settimeout(20)
def start(*arguments):
    child = subprocess.Popen([sys.argv[1], "peer", *arguments], stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "NOTIFY_SOCKET": "@" + name})
    return child, next(line for line in child.stderr if " listen=" in line).split(" listen=")[1].split()[0]
def says(*words):
    for word in words:
        got = heard.recv(100).decode()
        assert got == word, f"{got}, not {word}"
tracker, at = start("tracker", "--listen", "127.0.0.1:0")
says("READY=1")
lonely, _ = start("join", "--source", at, "--output", "y", "--timeout", "1")
says("STOPPING=1")
assert lonely.wait(20) == 3, lonely.returncode
source, _ = start("source", "--input", "in.bin", "--rate", "8M", "--listen", "127.0.0.1:0", "--tracker", at)
says("READY=1")
joined, _ = start("join", "--source", at, "--output", "y", "--timeout", "15")
says("READY=1")
for child in joined, source, tracker:
    child.terminate()
    says("STOPPING=1")
    assert child.wait(20) == 0, child.returncode
PYTHON

# --- A source of a file to fetch ends when the peers that came have it, or have left, and reports
# which of them got it.
has_some() { # FILE
  local i
  for ((i = 0; i < 200; i++)); do
    [ -s "$1" ] && return 0
    sleep 0.05
  done
  return 1
}
start deserted source --input in.bin --upload 2M --listen 127.0.0.1:0
deserted=$pid
start early join --source "127.0.0.1:$(port_of deserted)" --output early.bin
early=$pid
has_some early.bin || fail "nothing was fetched"
kill -TERM "$early"
wait "$deserted"
code=$?
[ "$code" -eq 1 ] || fail "a source whose only joiner left early: exit $code, not 1"
grep -q "no peer is known to have the whole file (1 left early)" deserted.log ||
  fail "a source whose only joiner left early does not tell"
grep -q " summary .* had_all=0 left_early=1" deserted.log || fail "the same in its summary"
# A file that is truncated while it is served: no peer takes the rest for all of it.
for rate in 0 2M; do
  cp in.bin shrinks.bin
  start shrinking source --input shrinks.bin --rate "$rate" --upload 3M --window 4 --listen 127.0.0.1:0
  shrinking=$pid
  start misled join --source "127.0.0.1:$(port_of shrinking)" --output misled.bin --startup 0 --window 4 --timeout 2
  misled=$pid
  has_some misled.bin || fail "nothing came of a file that is to be cut"
  : >shrinks.bin
  wait "$shrinking"
  code=$?
  [ "$code" -eq 3 ] || fail "a file that was cut, rate $rate: exit $code, not 3"
  [ "$(grep -c '^weft peer: shrinks.bin: was truncated while it was served$' shrinking.log)" -eq 1 ] ||
    fail "a file that was cut, rate $rate, is not told once"
  wait "$misled"
  code=$?
  [ "$code" -eq 1 ] || fail "who fetched a file that was cut, rate $rate: exit $code, not 1"
  rm -f misled.bin
done
start served source --input in.bin --upload 8M --listen 127.0.0.1:0
served=$pid
port=$(port_of served)
start killed join --source "127.0.0.1:$port" --output killed.bin
killed=$pid
start whole join --source "127.0.0.1:$port" --output whole.bin
whole=$pid
has_some killed.bin || fail "nothing was fetched beside another"
kill -KILL "$killed" # without a word: only its silence shows it
wait "$whole" || fail "who stayed beside one that was killed: exit $?"
same in.bin whole.bin "who stayed beside one that was killed got other bytes"
wait "$served"
code=$?
[ "$code" -eq 0 ] || fail "a source one of whose joiners was killed: exit $code, not 0"
grep -q "^warning unfinished left_early=1 had_all=1$" served.log ||
  fail "a source one of whose joiners was killed does not tell"

[ "$bad" -eq 0 ] && printf 'every input and output, byte for byte\n'
exit "$bad"
