#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Live inputs that are less even than a file are played whole: a FIFO without a writer yet, one that
# slows down until a segment takes longer than the lag, one that brings more within the lag than 64
# segments hold, one whose writer is killed, and UDP faster than --rate. What UDP loses is reported.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

# pace BYTES TIMES: writes that many bytes twenty times a second
pace() {
  local i
  for ((i = 0; i < $2; i++)); do
    head -c "$1" /dev/urandom
    sleep 0.05
  done
}

# watched NAME OPTION...: a viewer of NAME.fifo from its beginning gets every byte that went in
watched() {
  local name=$1 port viewer writer
  shift
  mkfifo "$name.fifo"
  start "$name" source --input "$name.fifo" --listen 127.0.0.1:0 "$@"
  port=$(port_of "$name") || fail "a source waits for whoever writes its FIFO"
  start "$name-viewer" join --source "127.0.0.1:$port" --output "$name.out"
  viewer=$pid
  until_said "$name-viewer" 'info stream' # so that it gets all of it, however late it began
  "$name" | tee "$name.in" >"$name.fifo" &
  writer=$!
  wait "$writer"
  wait "$viewer" || fail "$name: who watches ends with $?"
  cmp "$name.in" "$name.out" || fail "$name: other bytes than went in"
}

# shellcheck disable=SC2317 # called by their names
slow() {
  pace 10000 20
  pace 120 120 # 8 KiB take 3.4 s
  pace 10000 20
}
# shellcheck disable=SC2317
fast() { pace 250000 80; } # over 40 Mbit/s: 3 s of it are 300 segments

watched slow --segment-blocks 8 --lag 2s
watched fast
grep -q '^info summary .*skipped=0 passed_over=0' fast-viewer.log || fail 'a fast stream has gaps'

# A FIFO that is held open outlives its writer, and goes on with the next.
mkfifo held.fifo
head -c 700000 /dev/urandom >held.in
start held source --input held.fifo --rate 4M --listen 127.0.0.1:0
port=$(port_of held) || fail 'a source waits for whoever holds its FIFO'
start held-viewer join --source "127.0.0.1:$port" --output held.out --timeout 3
viewer=$pid
until_said held-viewer 'info stream'
exec 3<>held.fifo
(
  head -c 300000 held.in
  exec sleep 60
) >held.fifo &
writer=$!
until_grown held.out 200000
kill -KILL "$writer"
sleep 4 # more than --timeout
tail -c 400000 held.in >held.fifo
exec 3>&-
wait "$viewer" || fail "who watches what a second writer went on with ends with $?"
cmp held.in held.out || fail 'between two writers bytes were lost'

# A source that waits for a FIFO's writer can be stopped.
mkfifo none.fifo
start none source --input none.fifo --listen 127.0.0.1:0
port_of none >/dev/null || fail 'a source without a writer does not begin'
kill -TERM "$pid"
wait "$pid" || fail "a source without a writer ends with $?"
# A window that holds less than the lag is reported.
start told source --input - --window 64 --listen 127.0.0.1:0 < <(pace 1000000 160)
for ((i = 0; i < 200; i++)); do
  grep -q '^warning window-short' told.log && break
  sleep 0.05
done
grep -q '^warning window-short' told.log || fail 'a window that is too short is not told of'

# --- UDP: its sender is not paced by --rate, and what has arrived before SIGTERM is played.
send() { # PORT FILE PAUSE: its 1316 bytes at a time, with a pause in seconds after each sixteenth
  python3 - "$@" <<'PYTHON'
import socket, sys, time
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to.connect(("127.0.0.1", int(sys.argv[1])))
data = open(sys.argv[2], "rb").read()
for i, at in enumerate(range(0, len(data), 1316)):
    to.send(data[at : at + 1316])
    if i % 16 == 15:
        time.sleep(float(sys.argv[3]))
PYTHON
}

# A port that no other program has now.
free_port() {
  python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

receive() { # PORT FILE
  exec python3 - "$@" <<'PYTHON'
import socket, sys
at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
at.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
at.bind(("127.0.0.1", int(sys.argv[1])))
out = open(sys.argv[2], "wb", buffering=0)
while True:
    out.write(at.recv(65536))
PYTHON
}

head -c 1500000 /dev/urandom >fastudp.in
udp=$(free_port)
out=$(free_port)
receive "$out" relayed.out &
pids+=("$!")
start fastudp source --input "udp://127.0.0.1:$udp" --rate 800k --listen 127.0.0.1:0
source=$pid
start fastudp-viewer join --source "127.0.0.1:$(port_of fastudp)" --output fastudp.out
viewer=$pid
start fastudp-relay join --source "127.0.0.1:$(port_of fastudp)" --output "udp://127.0.0.1:$out"
relay=$pid
until_said fastudp-viewer 'info stream'
until_said fastudp-relay 'info stream'
send "$udp" fastudp.in 0.03 # 5 Mbit/s
kill -STOP "$source" # so that the rest is in the socket when the signal comes
send "$udp" fastudp.in 0
kill -TERM "$source"
kill -CONT "$source"
wait "$source" || fail "a source of UDP input ends with $?"
wait "$viewer" || fail "who watches UDP input ends with $?"
cat fastudp.in fastudp.in | cmp - fastudp.out || fail 'UDP input faster than --rate has gaps'
ended=$SECONDS
wait "$relay" || fail "who relays UDP input ends with $?"
[ $((SECONDS - ended)) -le 10 ] || fail "UDP output by --rate ends $((SECONDS - ended)) s late" # at 800k: 27 s
cmp -n 1400000 fastudp.in relayed.out || fail 'UDP input faster than --rate has gaps at UDP output'
grep -q '^warning input-dropped' fastudp.log && fail 'UDP input that was read is called dropped'

# More than the socket holds while the source does not read.
head -c 21056000 /dev/zero >burst.in # 16000 datagrams
start burst source --input "udp://127.0.0.1:$udp" --listen 127.0.0.1:0 --metrics 127.0.0.1:0
source=$pid
metrics=$(port_of burst metrics) || fail 'a source of UDP input does not begin'
kill -STOP "$source"
send "$udp" burst.in 0
kill -CONT "$source"
until_said burst 'warning input-dropped datagrams='
for ((i = 0; i < 100; i++)); do
  http_get 127.0.0.1 "$metrics" /metrics metrics.txt
  dropped=$(sed -n 's/^weft_peer_input_dropped_total //p' metrics.txt)
  taken=$(sed -n 's/^weft_peer_taken_bytes_total //p' metrics.txt)
  left=$(((16000 - dropped) * 1316 - taken)) # in the end not a whole segment
  [ "$left" -lt 65536 ] && break
  sleep 0.05
done
if [ "$left" -lt 0 ] || [ "$left" -ge 65536 ]; then
  fail "of 16000 datagrams $dropped were dropped and $taken bytes taken"
fi
grep -q "datagrams=$dropped\$" burst.log || fail 'the log and the metrics differ in what was dropped'
kill -TERM "$source"
wait "$source" || fail "a source of UDP input that was dropped ends with $?"
exit "$bad"
