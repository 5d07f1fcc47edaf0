#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# When a source is killed and restarted at its address with its key file, its live viewers go over
# to what it sends now, and a fetch goes on. Without the key file it is another source, of which the
# viewer warns. Two nodes with one key file are told so, and so are options that a stream does not
# use.
weft=$(readlink -f -- "$1")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

# numbered FROM: writes lines of 16 bytes, 64 kB a second, as long as they are read
numbered() {
  python3 -c '
import sys, time
n = int(sys.argv[1])
while True:
    sys.stdout.buffer.write(b"".join(b"%015d\n" % (n + i) for i in range(400)))
    sys.stdout.buffer.flush()
    n += 400
    time.sleep(0.1)' "$1" 2>/dev/null
}

# live NAME FROM OPTION...: starts a live source; sets $pid
live() {
  local name=$1 from=$2
  shift 2
  exec 6< <(numbered "$from")
  : >"$name.log"
  "$weft" peer source --input - --lag 500ms --segment-blocks 16 --log-format text "$@" <&6 2>"$name.log" &
  pid=$!
  pids+=("$pid")
  exec 6<&-
}

# --- Live, with the key file
live one 100000000 --key-file source.key --listen 127.0.0.1:0
source=$pid
at=127.0.0.1:$(port_of one)
start viewer join --source "$at" --output viewer.out
viewer=$pid
until_line viewer.out 0000001000
kill -KILL "$source"
wait "$source" 2>/dev/null
live two 200000000 --key-file source.key --listen "$at"
source=$pid
until_line viewer.out 0000002000
until_said viewer "warning source-restarted address=$at told_by=source"
kill -TERM "$source"
wait "$viewer" || fail "who watched a source that began again ends with $?"
# Each stream's lines follow each other, from where it was joined; whole segments are whole lines.
python3 - viewer.out <<'PYTHON' || fail 'what was played has gaps'
import re, sys
played = open(sys.argv[1], "rb").read()
cut = re.search(rb"0000002\d{8}\n", played).start()
for part, stream in ((played[:cut], 1), (played[cut:], 2)):
    lines = [int(line) for line in part.split()]
    assert lines[0] // 100000000 == stream and len(lines) > 400, lines[0]
    assert lines == list(range(lines[0], lines[0] + len(lines))), stream
PYTHON

# --- Live, without a key file: it could be anyone
live three 300000000 --listen 127.0.0.1:0
source=$pid
at=127.0.0.1:$(port_of three)
start other join --source "$at" --output other.out --timeout 9 --log-level debug
other=$pid
until_line other.out 0000003000
kill -KILL "$source"
wait "$source" 2>/dev/null
live four 400000000 --listen "$at"
source=$pid
wait "$other"
got=$?
[ "$got" -eq 1 ] || fail "who watched a source that another one followed ends with $got"
grep -q "^warning another-stream address=$at times=1 " other.log || fail 'nobody warned of another stream'
grep -q "^debug neighbour-lost address=$at reason=silent" other.log || fail 'a killed source did not fall silent'
! grep -q "^debug neighbour-lost address=$at reason=closed" other.log || fail 'a killed source took leave'
! grep -aq '^0000004' other.out || fail 'a stream of another key was played'
kill -TERM "$source"

# --- A file: the same stream, as long as it is the same file
head -c 2000000 /dev/urandom >in.bin
file=(source --input in.bin --key-file file.key --upload 3M)
start five "${file[@]}" --listen 127.0.0.1:0
source=$pid
at=127.0.0.1:$(port_of five)
start fetch join --source "$at" --output fetch.out
fetch=$pid
until_grown fetch.out 1
kill -KILL "$source"
wait "$source" 2>/dev/null
start six "${file[@]}" --listen "$at"
source=$pid
wait "$fetch" || fail "who fetched from a source that began again ends with $?"
cmp in.bin fetch.out || fail 'what was fetched from a source that began again differs'
wait "$source" || fail "a source that began again ends with $?"

# --- A tracker that is killed and restarted knows no node until those it knew dial it, and
# newcomers can wait for that
for key in '' --key-file=tracker.key; do # another identity, and the same
  start tracker tracker --listen 127.0.0.1:0 ${key:+"$key"}
  tracker=$pid
  at=127.0.0.1:$(port_of tracker)
  start known source --input in.bin --rate 2M --listen 127.0.0.1:0 --tracker "$at"
  source=$pid
  start before join --source "$at" --output before.out
  before=$pid
  until_grown before.out 1
  kill -KILL "$tracker"
  wait "$tracker" 2>/dev/null
  start again tracker --listen "$at" ${key:+"$key"}
  tracker=$pid
  start after join --source "$at" --output after.out
  until_grown after.out 1
  kill -TERM "$pid" "$before" "$source" "$tracker"
  wait "$pid" || fail "who came to a tracker that began again ends with $?"
  wait "$before" "$source" "$tracker"
  rm -f before.out after.out
done

# --- Two nodes with one key file
start seven source --input in.bin --rate 100k --listen 127.0.0.1:0 --lag 1s --linger 5 --stay 0s
source=$pid
at=127.0.0.1:$(port_of seven)
until_said seven 'warning option-unused option=--lag stream=on-demand'
for name in first second; do
  start "$name" join --source "$at" --output "$name.out" --key-file both.key --timeout 60
  until_said "$name" 'info stream'
done
[ "$(grep -c 'option-unused' seven.log)" -eq 1 ] || fail 'what is as it is anyway is told'
until_said first "warning identity-used-elsewhere told_by=$at times=1 advice="
kill -TERM "$source"

expect 2 '--stay is for files' source --input - --stay 1h
exit "$bad"
