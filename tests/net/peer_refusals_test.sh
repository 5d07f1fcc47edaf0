#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft peer` takes its options from flags, environment and file, refuses what is wrong in them, and
# reports everything that can go wrong before there is a stream with the right exit code and
# message.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 3000000 /dev/urandom >in.bin

# key_of NAME: prints the key of a listening source
key_of() {
  port_of "$1" >/dev/null
  sed -n 's/.* key=\([0-9a-f]*\).*/\1/p' "$1.log" | head -n 1
}

# --- Options: a flag takes precedence over the environment, and that over the file
printf '[peer]\nlisten=nonsense\nlog-level=debug\n' >peer.conf
expect 2 "--listen needs" source --config peer.conf --input in.bin
WEFT_PEER_LISTEN=also-nonsense expect 2 "also-nonsense" source --config peer.conf --input in.bin
WEFT_PEER_LISTEN=also-nonsense expect 2 "flag-nonsense" source --config peer.conf --input in.bin --listen flag-nonsense
printf '[peer]\nlistn=:1\n' >wrong.conf
expect 2 "--config wrong.conf:2: 'listn' is not an option here" source --config wrong.conf --input in.bin
expect 2 "absent.conf" source --config absent.conf --input in.bin
printf '[peer]\nlisten=:1\n\0\377' >wrong.conf
expect 2 "wrong.conf: not a text file" source --config wrong.conf --input in.bin
printf '[peer]\nlisten=:1\n\n[peer]\nrate=1M\n listen = :2\n' >wrong.conf
expect 2 "--config wrong.conf:6: listen is already set in [peer] on line 2" source --config wrong.conf --input in.bin
expect 2 "wrong.conf:6: listen is already set in [peer]" source --config wrong.conf --input in.bin --listen :3
printf '[peer]\nlisten=:1\nno key\n' >wrong.conf
expect 2 "--config wrong.conf:3: this is not a [group], name = value or # comment" source --config wrong.conf --input in.bin
printf '%064d\n' 7 >wrong.conf # a key file by mistake, whose content must not get into a log
expect 2 "--config wrong.conf:1: this is not a [group]" source --config wrong.conf --input in.bin
! grep -q 0007 error.txt || fail 'the line of a key file is told'
printf '[pear]\nlisten=:1\n' >wrong.conf
expect 2 "there is no group [peer], only [pear]" source --config wrong.conf --input in.bin

# --- What can go wrong
expect 2 "source, join or tracker" relay
expect 2 "--input is missing" source
expect 2 "--source is missing" join --output x
expect 2 "--output is missing" join --source 127.0.0.1:1
expect 2 "not HOST:PORT" join --source 127.0.0.1 --output x
expect 2 "not HOST:PORT" join --source 1::2:7000 --output x
expect 3 "no address was found for 'no..such:7000'" join --source no..such:7000 --output x
expect 2 "must fit into one datagram" source --input in.bin --segment-blocks 1000 --block-bytes 1000
expect 2 "--block-bytes may be at most 1150 with 4 blocks" source --input in.bin --segment-blocks 4 --block-bytes 1156
expect 2 "--rate needs" source --input in.bin --rate fast
expect 2 "--from needs" join --source 127.0.0.1:9 --output x --from 3x
expect 2 "--congestion needs" source --input in.bin --congestion reno
expect 2 "--scheme needs" source --input in.bin --scheme rarest
expect 2 "--scheme pull is for live sources" source --input in.bin --scheme pull
expect 2 "--window must be" source --input in.bin --window 0
expect 3 "absent.bin" source --input absent.bin
expect 3 "Is a directory" source --input .
for path in größe.bin $'gr\xf6\xdfe.bin'; do # bytes, whatever the locale makes of them
  expect 3 "No such file" source --input "$path"
  expect 2 "--config: Failed to open" source --input in.bin --config "$path"
done
: >empty.bin
expect 3 "empty.bin: is empty" source --input empty.bin
expect 3 "empty.bin: is empty" source --input empty.bin --rate 1M
expect 3 "--listen 192.0.2.1:7000: " source --input in.bin --listen 192.0.2.1:7000
expect 3 "--metrics 192.0.2.1:7000: " source --input in.bin --listen 127.0.0.1:0 --metrics 192.0.2.1:7000
expect 3 "no answer from 127.0.0.1:9 within 1 s" join --source 127.0.0.1:9 --output x --timeout 1
expect 3 "cannot send to 255.255.255.255:9: " join --source 255.255.255.255:9 --output x --timeout 1
# Times with a unit are taken from every source of options; a bare number is seconds, or
# milliseconds where it always was.
expect 3 "within 1 s" join --source 127.0.0.1:9 --output x --timeout 1s --linger 500ms --startup 1s --from 1.5min
expect 3 "within 0.5 s" join --source 127.0.0.1:9 --output x --timeout "500 ms"
WEFT_PEER_TIMEOUT=0.01min expect 3 "within 0.6 s" join --source 127.0.0.1:9 --output x
printf '[peer]\ntimeout = 700ms\nstartup = 0\n' >times.conf
expect 3 "within 0.7 s" join --config times.conf --source 127.0.0.1:9 --output x
expect 2 "--timeout needs a time such as 5, 5s or 500ms, not '1x'" join --source 127.0.0.1:9 --output x --timeout 1x
expect 2 "--stay needs a time such as 30min or 2h, or forever, not 'ever'" source --input in.bin --stay ever
expect 2 "--timeout needs" join --source 127.0.0.1:9 --output x --timeout -1s
expect 2 "--startup needs milliseconds up to 600000" join --source 127.0.0.1:9 --output x --startup 11min
expect 2 "--startup needs milliseconds" join --source 127.0.0.1:9 --output x --startup 0.5
expect 2 "--lag needs milliseconds" source --input in.bin --lag 0s
expect 2 "--from needs a time such as 90" join --source 127.0.0.1:9 --output x --from -1s
timeout 20 "$weft" peer join --source 127.0.0.1:9 --output x --timeout 1 --log-format json 2>error.txt
[ $? -eq 3 ] || fail "a log in JSON changes the exit code"
python3 - error.txt <<'PYTHON' || fail "an error is no JSON in a log of JSON: $(cat error.txt)"
import json, sys
errors = [line for line in map(json.loads, open(sys.argv[1])) if line["level"] == "error"]
assert len(errors) == 1 and errors[0]["exit_code"] == 3 and "no answer" in errors[0]["error"], errors
PYTHON
expect 4 "backend none" source --input in.bin --backend none
for few in 5 8 12; do # GLib ends a program that has no descriptors left for its loops
  code=0
  (ulimit -n "$few" && exec timeout 20 "$weft" peer join --source 127.0.0.1:9 --output http://127.0.0.1:9/) \
    2>error.txt </dev/null || code=$?
  [ "$code" -eq 4 ] || fail "$few file descriptors: exit $code: $(tail -n 1 error.txt)"
  grep -q 'file descriptors' error.txt || fail "$few file descriptors: $(tail -n 3 error.txt)"
done
expect 2 "--stream needs" source --input in.bin --stream 10000000000000000
expect 2 "--stream needs" source --input in.bin --stream -1
expect 3 "is not udp://" source --input udp://:0
# An impossible output is reported before any node is looked for.
for output in absent/x . http://:0/ http://127.0.0.1:1/x udp://127.0.0.1 rtp://127.0.0.1:1; do
  expect 3 "$output: " join --source 127.0.0.1:9 --output "$output" --timeout 1
done
# Of two nodes with the same port, the second reports it just as soon.
busy=$((20000 + RANDOM % 20000))
start first join --source 127.0.0.1:9 --output "http://127.0.0.1:$busy/" --timeout 60
port_of first >/dev/null || fail 'a peer with an HTTP output did not start'
expect 3 "http://127.0.0.1:$busy/: Address already in use" join --source 127.0.0.1:9 --output "http://127.0.0.1:$busy/" --timeout 60
expect 3 "http://:$busy/: Address already in use" join --source 127.0.0.1:9 --output "http://:$busy/" --timeout 60
kill -TERM "$pid"
wait "$pid" || fail "a peer without a stream after SIGTERM: exit $?"
expect 5 "64 hexadecimal" join --source 127.0.0.1:9 --output x --source-key 1234
printf 'short\n' >bad.key
expect 5 "does not hold 64" source --input in.bin --key-file bad.key
expect 3 "--key-file: " source --input in.bin --key-file .
(
  trap '' XFSZ
  ulimit -f 0
  timeout 20 "$weft" peer source --input in.bin --key-file half.key 2>/dev/null
) && fail "a key that could not be written"
[ ! -e half.key ] || fail "half a key was left"
start other source --input in.bin --listen 127.0.0.1:0
start keyed source --input in.bin --listen 127.0.0.1:0 --key-file own.key
keyed=$pid
port=$(port_of keyed)
[ "$(stat -c %a own.key)" = 600 ] || fail "the key file's mode"
expect 5 "--source-key" join --source "127.0.0.1:$port" --output x --timeout 2 --source-key "$(key_of other)"
expect 3 "No such file" join --source "127.0.0.1:$port" --output absent/x
kill -INT "$keyed" # ignored, as the shell lets what it starts with `&` ignore it
sleep 0.5
kill -TERM "$keyed"
wait "$keyed"
code=$?
[ "$code" -eq 0 ] || fail "after a SIGINT that was ignored, and SIGTERM: exit $code, not 0"
python3 - "$weft" <<'PYTHON' || fail "after Ctrl-C, or a terminal that closed"
import signal, subprocess, sys
for number, code in (signal.SIGINT, 130), (signal.SIGHUP, 129):
    signal.signal(number, signal.SIG_DFL)  # a runner may have ignored it, which would be inherited
    child = subprocess.Popen([sys.argv[1], "peer", "source", "--input", "in.bin", "--listen", "127.0.0.1:0"],
                             stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if " listen=" in line:
            break
    child.send_signal(number)
    assert " summary " in child.communicate(timeout=20)[1], f"{number.name}: it did not take its leave"
    assert child.returncode == code, f"exit {child.returncode}, not {code}"
PYTHON

[ "$bad" -eq 0 ] && printf 'every refusal, with its code and message\n'
exit "$bad"
